//! Tenants' programs in processes of their own, on packets in shared memory.
//!
//! A [`Sandbox`] is what a switch has of a tenant's program. It starts a process, which shares two
//! pieces of memory with it: an [`Arena`] of frames, and one of rings (descriptors go out, verdicts and
//! digests come back) and of what the tenant's VM says. No packet is copied, unless the caller does so ([`CopyBack`]). All
//! else goes by a socket.
//!
//! **The switch believes nothing.** Verdicts are taken in the order of the packets; of each, slot and
//! generation have to be those of the packet, the verdict one that there is, and the packet within its
//! frame. Whatever else comes is counted, and the tenant is evicted ([`Lie`]). A frame may be written by
//! the process at any time: what is checked after a verdict has to be copied first.
//!
//! **Exactly one answer for each packet.** What is on its way is a queue of the switch's own; an answer
//! takes its packet out. When the process is too slow, ends or lies, it is killed, and once it is gone the
//! tenant's [`Policy`] answers for what was on its way.
//!
//! **What a program reads of its tenant's VM** is memory that the tenant writes: a [`VmFeed`] copies it, looks
//! at it, and gives the process what the program reads ([`readings`]).
//!
//! **The process** gives up rights, namespaces, files and system calls before it is told of a program
//! ([`Isolation`]), and for good before the program runs. A new version of a program is a new process
//! ([`Sandbox::swap`]).

mod arena;
mod channel;
mod child;
mod clock;
mod codec;
mod copy_back;
mod counters;
mod error;
mod filter;
mod flights;
mod group;
mod isolation;
mod journal;
#[cfg(test)]
mod liars;
mod memory;
mod message;
mod peer;
mod policy;
mod readings;
mod rings;
mod sandbox;
mod spawn;
mod swap;
mod verdicts;
mod vm_feed;

pub use arena::Arena;
pub use child::run_child;
pub use copy_back::CopyBack;
pub use counters::Counters;
pub use error::StartError;
#[doc(hidden)]
pub use filter::filtered;
pub use isolation::Isolation;
pub use peer::probe;
pub use policy::{BackOff, Config, DigestRate, Policy};
pub use sandbox::{Answer, Busy, Decision, Lie, Packet, Reason, Sandbox, Status};
pub use spawn::Launcher;
pub use swap::{Expected, Prepared, Preparer, SelfTest};
pub use vm_feed::{VmFeed, VmStatus, no_feed};
