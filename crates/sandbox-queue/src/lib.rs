//! Packet queues between a switch and a sandbox process, in memory that both can write.
//!
//! A [`PacketQueue`] is the switch's side: it submits packets in frames of an [`Arena`] and takes
//! one answer for each. A process serves up to [`MAX_QUEUES`] queues, so that several threads of a
//! switch, or of another process, use the same program without a lock. [`ProcessEnd`] is the
//! process's side, [`Notices`] the part of the switch that controls the process.
//!
//! **The switch does not trust the process.** Verdicts are accepted only in packet order. Slot and
//! generation of a verdict have to be those of the packet, the verdict has to be valid, and the
//! packet has to be within its frame. Anything else is a [`ProtocolViolation`]. The process may
//! write to frames at any time, so data that is checked after a verdict has to be copied first.
//!
//! **Each packet gets exactly one answer.** The switch keeps its own queue of packets in flight; an
//! answer removes its packet. Without a process, the tenant's [`Policy`] answers.

mod arena;
mod counters;
mod flights;
mod foreign;
mod memory;
mod queue;
mod rings;
mod types;
mod verdicts;

pub use arena::Arena;
pub use counters::PacketCounters;
pub use foreign::{PeerSocket, receive_bytes, receive_descriptors};
pub use memory::{Mapping, sealed};
pub use queue::PacketQueue;
pub use rings::{Descriptor, HEADER, MAX_QUEUES, Notices, ProcessEnd, Reply, Rings, SwitchEnd};
pub use types::{
    Accusation, Answer, Busy, Decision, FaultKind, Packet, Policy, ProtocolViolation, Reason,
};
pub use verdicts::Code;
