//! What goes into a sandbox, and what comes out.

use std::time::Duration;

use crate::outcome::FaultKind;
use crate::process::isolation::Isolation;
use crate::program::Engine;

/// A packet in a frame of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The frame.
    pub slot: u32,
    /// Where in its frame it begins.
    pub start: u32,
    /// Its length in bytes.
    pub length: u32,
    /// The port that it came by.
    pub port: u32,
    /// The time that the program sees; none: the machine's, as for a packet that has just come.
    pub at: Option<Duration>,
}

/// Why a packet is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// There are as many on their way as there may be.
    #[error("too many packets are on their way")]
    Full,
    /// The packet in this frame has no answer yet.
    #[error("the frame is on its way already")]
    Flying,
    /// There is no such frame, or the packet does not lie in it.
    #[error("there is no such packet")]
    NoPacket,
}

/// What is to be done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is dropped.
    Drop,
    /// It goes on where it was going.
    Pass,
    /// It leaves by a port, which the program names: whether the tenant has it is the caller's to see.
    Redirect(u32),
}

/// Who decided, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program.
    Program,
    /// The policy: the program said that it could not go on.
    Aborted,
    /// The policy: the program broke a limit.
    Fault(FaultKind),
    /// The policy: no verdict in time.
    Deadline,
    /// The policy: the process ended.
    Crashed,
    /// The policy: the process lied.
    Lied,
    /// The policy: the process is being started.
    Restarting,
    /// The policy: the tenant has been evicted.
    Evicted,
}

/// What comes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Its frame, which is the caller's again.
    pub slot: u32,
    /// Where it begins now.
    pub start: u32,
    /// Its length now.
    pub length: u32,
    /// What is to be done.
    pub decision: Decision,
    /// A port to which a copy is to go as well.
    pub clone: Option<u32>,
    /// Who decided.
    pub reason: Reason,
}

/// How a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The process, if there is one.
    pub process: Option<u32>,
    /// Whether there will be none any more.
    pub is_evicted: bool,
    /// The version of the program: 1, and one more with each that took over.
    pub version: u64,
    /// What runs the program.
    pub engine: Engine,
    /// What the process was kept from.
    pub isolation: Isolation,
    /// Why the last process had to go.
    pub last_failure: Option<String>,
}
