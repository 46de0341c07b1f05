//! Packets, answers, and the policy for packets without a verdict.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limit that a program exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A packet in a frame of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Frame number.
    pub slot: u32,
    /// Offset of the packet in its frame.
    pub start: u32,
    /// Length in bytes.
    pub length: u32,
    /// Ingress port.
    pub port: u32,
    /// Time that the program sees; `None` for the host time, as for a packet that has just arrived.
    pub at: Option<Duration>,
}

/// Reason that a packet is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The maximum number of packets is in flight.
    #[error("too many packets are on their way")]
    Full,
    /// The packet in this frame is in flight.
    #[error("the frame is on its way already")]
    Flying,
    /// The frame does not exist, or the packet exceeds it.
    #[error("no such packet")]
    NoPacket,
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Drop the packet.
    Drop,
    /// Let the packet continue to its original destination.
    Pass,
    /// Send the packet out of this port. The program chooses it; the caller checks that the tenant
    /// owns it.
    Redirect(u32),
}

/// Policy for packets without a verdict of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Policy {
    /// Fail closed: drop them.
    #[default]
    Closed,
    /// Fail open: let them continue to their original destination.
    Open,
}

impl Policy {
    pub(crate) fn decision(self) -> Decision {
        match self {
            Self::Closed => Decision::Drop,
            Self::Open => Decision::Pass,
        }
    }
}

/// Origin of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The program decided.
    Program,
    /// Policy: the program aborted.
    Aborted,
    /// Policy: the program exceeded a limit.
    Fault(FaultKind),
    /// Policy: the deadline was exceeded.
    Deadline,
    /// Policy: the process exited.
    Crashed,
    /// Policy: the process violated the protocol.
    ProtocolViolation,
    /// Policy: the process is being restarted.
    Restarting,
    /// Policy: the tenant is evicted.
    Evicted,
}

/// The answer for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Frame of the packet, which belongs to the caller again.
    pub slot: u32,
    /// New offset of the packet in its frame.
    pub start: u32,
    /// New length.
    pub length: u32,
    /// Decision about the packet.
    pub decision: Decision,
    /// Egress port of a clone of the packet.
    pub clone: Option<u32>,
    /// Origin of the decision.
    pub reason: Reason,
}

/// A protocol violation by a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProtocolViolation {
    /// An impossible number of verdicts.
    Index,
    /// A verdict for a frame other than the next packet's.
    Slot,
    /// A verdict for an older packet in the same frame.
    Generation,
    /// A packet that is not within its frame.
    Length,
    /// An unknown verdict.
    Verdict,
    /// More digests than the ring can hold, or an undeclared digest.
    Digest,
    /// An invalid answer on the control socket.
    Answer,
}

impl fmt::Display for ProtocolViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "an impossible number of verdicts",
            Self::Slot => "a verdict for another frame",
            Self::Generation => "a verdict for an older packet",
            Self::Length => "a packet that is not within its frame",
            Self::Verdict => "an unknown verdict",
            Self::Digest => "an undeclared digest, or too many digests",
            Self::Answer => "an invalid answer on the control socket",
        })
    }
}

/// Reason to suspect a process, found by a user of one of its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accusation {
    /// A packet has waited for longer than the deadline.
    Late,
    /// The process has violated the protocol.
    Violation(ProtocolViolation),
}
