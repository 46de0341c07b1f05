//! Runs tenants' programs on packets in memory: native code whose every access is within its bounds,
//! and which comes to an end.
//!
//! A [`Program`] is an object (`p4::object`) that has been verified in structure and compiled; an
//! [`Instance`] has its maps, and [`Instance::run`] runs it on a [`PacketBuffer`], without a copy of
//! the packet and without an allocation.
//!
//! **Bounds.** What a program has for addresses are places in a space of its own (`address.rs`): the
//! packet begins at one number, the stack at another. Each access goes through the bounds of the region
//! that the number is in, so a program neither sees nor reaches an address of this process. Nothing is
//! proven, and nothing is left out but the check of what is within the frame by its own constant.
//!
//! **Meter.** Each basic block is paid for before it runs, one for each of its instructions, and what
//! helpers do beyond a few instructions is paid for too. A program that cannot pay has come to its end.
//!
//! **Process.** A tenant's program runs in a process of its own ([`process`]), whose only ways out are
//! verdicts that are checked.
//!
//! What happens is the same on every machine: [`interpret`](Engine::Interpreter) runs the same programs
//! without a compiler, and tests hold one against the other.

mod address;
mod compile;
mod control;
mod digests;
mod error;
mod flow;
mod helpers;
mod instance;
mod interpret;
mod kinds;
mod maps;
mod outcome;
mod packet;
pub mod process;
mod program;
mod state;
mod tested;
#[cfg(test)]
mod tests;

pub use control::{ControlError, Maps, Operation, Piece};
pub use digests::Digest;
pub use error::LoadError;
pub use instance::Instance;
pub use maps::{MapError, MapRef};
pub use outcome::{Fault, FaultKind, Outcome, Verdict};
pub use packet::PacketBuffer;
pub use program::{Engine, Limits, Program};
pub use tested::Tested;
