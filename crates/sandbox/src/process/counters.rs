//! Counters of a tenant.

use crate::outcome::FaultKind;

/// Counters of a tenant, in packets unless stated otherwise. Each packet is counted in exactly one
/// of `passed`, `dropped`, `redirected` and `policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Submitted to the sandbox.
    pub submitted: u64,
    /// Passed by the program.
    pub passed: u64,
    /// Dropped by the program.
    pub dropped: u64,
    /// Redirected to a port by the program.
    pub redirected: u64,
    /// Cloned to a port, independent of the verdict.
    pub cloned: u64,
    /// Decided by the policy, for one of the following reasons.
    pub policy: u64,
    /// The program aborted.
    pub aborted: u64,
    /// The program exceeded a limit, by [`FaultKind`] number.
    pub faults: [u64; 5],
    /// Deadline exceeded, by this packet or by another one in flight at the same time.
    pub deadline: u64,
    /// In flight when the process crashed.
    pub crashed: u64,
    /// In flight when the process violated the protocol.
    pub violated: u64,
    /// Submitted while the process was being restarted.
    pub restarting: u64,
    /// Submitted after the tenant was evicted.
    pub evicted: u64,
    /// Processes killed because of the deadline.
    pub slow_processes: u64,
    /// Processes that exited by themselves or were killed by another process.
    pub crashed_processes: u64,
    /// Processes killed because of a protocol violation.
    pub violating_processes: u64,
    /// Process restarts.
    pub restarts: u64,
    /// Program versions that took over.
    pub swaps: u64,
    /// Digests received. Each one has been fetched or is pending, except for excess digests.
    pub digests: u64,
    /// Digests that exceeded the rate limit or the queue.
    pub excess_digests: u64,
    /// Digests that the process reports as lost.
    pub lost_digests: u64,
}

impl Counters {
    /// Packets with a fault of this kind.
    pub fn fault(&self, kind: FaultKind) -> u64 {
        self.faults[kind as usize - 1]
    }
}
