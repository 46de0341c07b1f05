//! Numeric encoding of verdicts in the rings.

use crate::{Decision, FaultKind, Policy, Reason};

const ABORT: u32 = 0;
const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 3;
/// Base of the numbers of faults.
const FAULT: u32 = 16;

/// Kinds of faults, each at the index of its number minus one.
const FAULTS: [FaultKind; 5] =
    [FaultKind::Bounds, FaultKind::Meter, FaultKind::Stack, FaultKind::Map, FaultKind::Room];

/// Verdict of a process, as it is encoded in the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The program aborted.
    Abort,
    /// Drop the packet.
    Drop,
    /// Let the packet continue to its original destination.
    Pass,
    /// Send the packet out of a port.
    Redirect(u32),
    /// The program exceeded a limit.
    Fault(FaultKind),
}

impl Code {
    /// Encodes a verdict as a number and a port.
    pub fn encode(self) -> (u32, u32) {
        match self {
            Self::Abort => (ABORT, 0),
            Self::Drop => (DROP, 0),
            Self::Pass => (PASS, 0),
            Self::Redirect(port) => (REDIRECT, port),
            Self::Fault(kind) => (FAULT + kind as u32, 0),
        }
    }

    /// Returns the decision about a packet with this verdict, and its origin.
    pub fn decide(self, policy: Policy) -> (Decision, Reason) {
        match self {
            Self::Abort => (policy.decision(), Reason::Aborted),
            Self::Fault(kind) => (policy.decision(), Reason::Fault(kind)),
            Self::Drop => (Decision::Drop, Reason::Program),
            Self::Pass => (Decision::Pass, Reason::Program),
            Self::Redirect(port) => (Decision::Redirect(port), Reason::Program),
        }
    }

    /// Decodes a verdict; `None` if it is invalid.
    pub fn decode(number: u32, port: u32) -> Option<Self> {
        match number {
            ABORT => Some(Self::Abort),
            DROP => Some(Self::Drop),
            PASS => Some(Self::Pass),
            REDIRECT => Some(Self::Redirect(port)),
            number => {
                let place = number.checked_sub(FAULT + 1)?;
                FAULTS.get(place as usize).copied().map(Self::Fault)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_a_round_trip() {
        let faults = FAULTS.map(Code::Fault);
        for code in faults.into_iter().chain([Code::Abort, Code::Pass, Code::Redirect(7)]) {
            let (number, port) = code.encode();
            assert_eq!(Code::decode(number, port), Some(code));
        }
        assert_eq!([4, 15, 16, 22, u32::MAX].map(|number| Code::decode(number, 0)), [None; 5]);
    }
}
