//! Runs tenants' programs on packets in memory, as native code with checked memory accesses and
//! bounded execution.
//!
//! A [`Program`] is an object (`p4_object`) that has been structurally verified and compiled. An
//! [`Instance`] holds its maps, and [`Instance::run`] runs it on a [`PacketBuffer`], without
//! copying the packet and without allocating.
//!
//! **Bounds.** Programs have their own address space (`address.rs`): the packet starts at one fixed
//! address, the stack at another. Each access is checked against the bounds of the region that the
//! address refers to, so a program neither learns nor reaches an address of this process. No static
//! proof is required. The only check that is elided is for constant offsets within the stack frame.
//!
//! **Meter.** Each basic block is charged before it runs, one unit per instruction. Helpers are
//! charged for work beyond a few instructions. A program that runs out of fuel is stopped.
//!
//! **Process.** A tenant's program runs in its own process ([`process`]). Its only outputs are
//! verdicts and digests, which are checked.
//!
//! Results are the same on every machine: [`interpret`](Executor::Interpreter) runs the same programs
//! without a compiler, and tests compare the two.

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
#[cfg(any(test, feature = "stf"))]
mod tested;
#[cfg(test)]
mod tests;

pub use control::{ControlError, MAX_PIECE, Maps, Operation, Piece};
pub use digests::Digest;
pub use error::LoadError;
pub use instance::Instance;
pub use maps::{MapError, MapRef};
pub use outcome::{Fault, FaultKind, Outcome, Verdict};
pub use packet::PacketBuffer;
pub use program::{Executor, Limits, Program};
#[cfg(any(test, feature = "stf"))]
pub use tested::Tested;
