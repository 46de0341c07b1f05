//! Input and output types of a sandbox.

use std::time::Duration;

use crate::outcome::FaultKind;
use crate::process::isolation::Isolation;
use crate::program::Executor;

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
    #[error("there is no such packet")]
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

/// Origin of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Status of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Process id, if a process is running.
    pub process: Option<u32>,
    /// True if the tenant is evicted and gets no further process.
    pub is_evicted: bool,
    /// Version of the program: 1 at first, incremented by each swap.
    pub version: u64,
    /// Execution executor of the program.
    pub executor: Executor,
    /// Isolation of the process.
    pub isolation: Isolation,
    /// Reason that the last process was killed.
    pub last_failure: Option<String>,
}
