//! What is counted of a tenant.

use crate::outcome::FaultKind;

/// What is counted of a tenant, in packets where nothing else is said. Each packet is one of `passed`,
/// `dropped`, `redirected` and `policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Given to the sandbox.
    pub submitted: u64,
    /// The program let them pass.
    pub passed: u64,
    /// The program dropped them.
    pub dropped: u64,
    /// The program sent them to a port.
    pub redirected: u64,
    /// A copy went to a port, whatever came of the packet.
    pub cloned: u64,
    /// The policy's answer, for one of the reasons that follow.
    pub policy: u64,
    /// The program said itself that it could not go on.
    pub aborted: u64,
    /// The program broke a limit, in the order of [`FaultKind`]'s numbers.
    pub faults: [u64; 5],
    /// No verdict within the deadline, or on their way with such a packet.
    pub deadline: u64,
    /// On their way when the process ended.
    pub crashed: u64,
    /// On their way when the process lied.
    pub lied: u64,
    /// There was no process: it was being started.
    pub restarting: u64,
    /// The tenant had been evicted.
    pub evicted: u64,
    /// Processes that were too slow.
    pub slow_processes: u64,
    /// Processes that ended by themselves, or by somebody else.
    pub crashed_processes: u64,
    /// Processes that lied.
    pub lies: u64,
    /// Processes started again.
    pub restarts: u64,
    /// Versions that took over.
    pub swaps: u64,
    /// Digests, each of which was fetched or waits to be, unless it is one of those that follow.
    pub digests: u64,
    /// Digests beyond the rate that a program may have, and those that nobody fetched in time.
    pub excess_digests: u64,
    /// Digests that the process did not get rid of, as it says.
    pub lost_digests: u64,
}

impl Counters {
    /// Packets of a kind of fault.
    pub fn fault(&self, kind: FaultKind) -> u64 {
        self.faults[kind as usize - 1]
    }
}
