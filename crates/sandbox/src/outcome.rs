//! Result of running a program on a packet.

use std::fmt;

use sandbox_queue::Code;
pub use sandbox_queue::FaultKind;

/// Result of running a program on a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Verdict for the packet.
    pub verdict: Verdict,
    /// Egress port of a clone of the packet.
    pub clone: Option<u32>,
    /// Fuel consumed: instructions and helper work.
    pub used: u64,
}

/// Verdict for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program aborted.
    Abort,
    /// Drop the packet.
    Drop,
    /// Let the packet continue to its original destination.
    Pass,
    /// Send the packet out of a port.
    Redirect(u32),
    /// The program exceeded a limit; the tenant's policy decides about the packet. Its start and
    /// length are those before the run, unless it had to be moved. Its bytes may have been
    /// modified.
    Fault(Fault),
}

/// A fault of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Limit that was exceeded.
    pub kind: FaultKind,
    /// Faulting instruction; for the meter, the first instruction of the block that could not be
    /// charged.
    pub instruction: usize,
}

impl Fault {
    /// Kind of a fault by its number; out of bounds if there is none.
    pub(crate) fn kind_of(number: u32) -> FaultKind {
        match number {
            2 => FaultKind::Meter,
            3 => FaultKind::Stack,
            4 => FaultKind::Map,
            5 => FaultKind::Room,
            _ => FaultKind::Bounds,
        }
    }
}

impl Verdict {
    /// Encoding in the rings.
    pub(crate) fn code(self) -> Code {
        match self {
            Self::Abort => Code::Abort,
            Self::Drop => Code::Drop,
            Self::Pass => Code::Pass,
            Self::Redirect(port) => Code::Redirect(port),
            Self::Fault(fault) => Code::Fault(fault.kind),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at instruction {}", self.kind, self.instruction)
    }
}
