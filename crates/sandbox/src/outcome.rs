//! Result of running a program on a packet.

use std::fmt;

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

/// Limit that a program exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// A load, a store or a helper argument is outside all regions, or crosses the end of a region.
    Bounds = 1,
    /// The meter ran out.
    Meter = 2,
    /// The call depth limit was exceeded.
    Stack = 3,
    /// A helper argument is not a map handle.
    Map = 4,
    /// The packet cannot grow or shrink by this amount.
    Room = 5,
}

impl FaultKind {
    pub(crate) fn from_number(number: u32) -> Self {
        match number {
            2 => Self::Meter,
            3 => Self::Stack,
            4 => Self::Map,
            5 => Self::Room,
            _ => Self::Bounds,
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bounds => "an access out of bounds",
            Self::Meter => "too many instructions",
            Self::Stack => "too many nested calls",
            Self::Map => "a helper was given no map",
            Self::Room => "no room for the packet to grow, or too few bytes to shrink",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at instruction {}", self.kind, self.instruction)
    }
}
