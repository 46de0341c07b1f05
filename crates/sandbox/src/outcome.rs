//! What comes of a packet.

use std::fmt;

/// What comes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// What is to be done with it.
    pub verdict: Verdict,
    /// The port to which a copy is to go as well.
    pub clone: Option<u32>,
    /// What the meter counted: instructions, and what helpers did.
    pub used: u64,
}

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program could not go on, and says so itself.
    Abort,
    /// It is dropped.
    Drop,
    /// It goes on where it was going.
    Pass,
    /// It leaves by a port.
    Redirect(u32),
    /// The program broke its limits: whether the packet passes is the policy's choice. It has the start
    /// and the length that it came with, unless it had to be moved; bytes may have been written already.
    Fault(Fault),
}

/// A program that broke its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which limit.
    pub kind: FaultKind,
    /// The instruction that did it; of the meter, the first of those that cannot be paid.
    pub instruction: usize,
}

/// A limit that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// A load, a store or an argument of a helper outside of all regions, or across an end of one.
    Bounds = 1,
    /// More instructions than a packet may take.
    Meter = 2,
    /// Functions that have called each other too deep.
    Stack = 3,
    /// A helper was given something that is no map.
    Map = 4,
    /// The packet cannot grow or shrink so much.
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
