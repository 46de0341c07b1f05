//! Packet counters.

use crate::{Answer, Decision, FaultKind, Reason};

/// Packets by outcome. Each submitted packet is counted in exactly one of `passed`, `dropped`,
/// `redirected` and `policy` once it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketCounters {
    /// Submitted.
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
}

impl PacketCounters {
    /// Packets with a fault of this kind.
    pub fn fault(&self, kind: FaultKind) -> u64 {
        self.faults[kind as usize - 1]
    }

    pub(crate) fn count(&mut self, answer: &Answer) {
        let counter = match answer.reason {
            Reason::Program => match answer.decision {
                Decision::Pass => &mut self.passed,
                Decision::Drop => &mut self.dropped,
                Decision::Redirect(_) => &mut self.redirected,
            },
            Reason::Aborted => &mut self.aborted,
            Reason::Fault(kind) => &mut self.faults[kind as usize - 1],
            Reason::Deadline => &mut self.deadline,
            Reason::Crashed => &mut self.crashed,
            Reason::ProtocolViolation => &mut self.violated,
            Reason::Restarting => &mut self.restarting,
            Reason::Evicted => &mut self.evicted,
        };
        *counter += 1;
        self.policy += u64::from(answer.reason != Reason::Program);
        self.cloned += u64::from(answer.clone.is_some());
    }
}
