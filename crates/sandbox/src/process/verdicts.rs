//! Numeric encoding of verdicts.

use crate::outcome::{FaultKind, Verdict};

const ABORT: u32 = 0;
const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 3;
/// Base of the numbers of faults.
const FAULT: u32 = 16;

/// Kinds of faults, each at the index of its number minus one.
pub(super) const FAULTS: [FaultKind; 5] =
    [FaultKind::Bounds, FaultKind::Meter, FaultKind::Stack, FaultKind::Map, FaultKind::Room];

/// Decoded verdict of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Abort,
    Drop,
    Pass,
    Redirect(u32),
    Fault(FaultKind),
}

/// Encodes a verdict as a number and a port.
pub(super) fn number(verdict: Verdict) -> (u32, u32) {
    match verdict {
        Verdict::Abort => (ABORT, 0),
        Verdict::Drop => (DROP, 0),
        Verdict::Pass => (PASS, 0),
        Verdict::Redirect(port) => (REDIRECT, port),
        Verdict::Fault(fault) => (FAULT + fault.kind as u32, 0),
    }
}

/// Decodes a verdict; `None` if it is invalid.
pub(super) fn said(number: u32, port: u32) -> Option<Said> {
    match number {
        ABORT => Some(Said::Abort),
        DROP => Some(Said::Drop),
        PASS => Some(Said::Pass),
        REDIRECT => Some(Said::Redirect(port)),
        number => {
            let place = number.checked_sub(FAULT + 1)?;
            FAULTS.get(place as usize).copied().map(Said::Fault)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Fault;

    #[test]
    fn verdicts_survive_a_round_trip() {
        for kind in FAULTS {
            let (what, port) = number(Verdict::Fault(Fault { kind, instruction: 3 }));
            assert_eq!(said(what, port), Some(Said::Fault(kind)));
        }
        let (what, port) = number(Verdict::Redirect(7));
        assert_eq!(said(what, port), Some(Said::Redirect(7)));
        assert_eq!([4, 15, 16, 22, u32::MAX].map(|number| said(number, 0)), [None; 5]);
    }
}
