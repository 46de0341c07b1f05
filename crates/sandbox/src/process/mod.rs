//! Sandbox processes: tenants' programs run in separate processes, on packets in shared memory.
//!
//! A [`Sandbox`] is the switch's handle of a tenant's program. It starts a process and shares two
//! pieces of memory with it: an [`Arena`] of frames, and the rings. The rings carry descriptors to
//! the process, verdicts and digests back, and the readings of the tenant's VM. Packets are not
//! copied, unless the caller asks for it ([`CopyBack`]). Everything else uses a control socket.
//!
//! **The switch does not trust the process.** Verdicts are accepted only in packet order. Slot and
//! generation of a verdict have to be those of the packet, the verdict has to be valid, and the
//! packet has to be within its frame. Anything else is counted as a protocol violation, and the
//! tenant is evicted ([`ProtocolViolation`]). The process may write to frames at any time, so data that is
//! checked after a verdict has to be copied first.
//!
//! **Each packet gets exactly one answer.** The switch keeps its own queue of packets in flight; an
//! answer removes its packet. If the process misses the deadline, exits or violates the protocol,
//! it is killed. After it has exited, the tenant's [`Policy`] answers for the packets in flight.
//!
//! **Values of the tenant's VM** come from memory that the tenant writes. A [`VmFeed`] copies and
//! validates it, and passes the values that the program reads to the process ([`readings`]).
//!
//! **The process** drops its privileges, leaves the host's namespaces, closes its files and filters
//! its system calls before it receives a program ([`Isolation`]). The filter becomes stricter
//! before the program runs. A new version of a program is a new process ([`Sandbox::swap`]).

mod channel;
mod child;
mod clock;
mod copy_back;
mod counters;
mod deadlines;
mod error;
mod filter;
mod group;
mod handle;
mod hosted;
mod isolation;
mod journal;
mod machine;
mod message;
mod peer;
mod policy;
mod readings;
mod sandbox;
mod server;
mod shared;
mod spawn;
mod swap;
#[cfg(test)]
mod violations;
mod vm_feed;

pub use child::run_child;
pub use copy_back::CopyBack;
pub use counters::Counters;
pub use error::StartError;
#[doc(hidden)]
pub use filter::filtered;
pub use group::remove_stale_groups;
pub use hosted::{Host, Hosted, Turn};
pub use isolation::Isolation;
pub use machine::{Kernel, QEMU};
#[doc(hidden)]
pub use message::checked_answer;
pub use peer::probe;
pub use policy::{BackOff, Config, DigestRate};
pub use sandbox::{Sandbox, Status};
pub use sandbox_queue::{
    Accusation, Answer, Arena, Busy, Decision, Packet, PacketCounters, PacketQueue, Policy,
    ProtocolViolation, Reason,
};
pub use shared::Shared;
pub use spawn::Launcher;
pub use swap::{Expected, Prepared, Preparer, SelfTest};
pub use vm_feed::{VmFeed, VmStatus, no_feed};
