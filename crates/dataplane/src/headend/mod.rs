//! How a headend steers an application's packets onto a segment list.
//!
//! [`KernelSeg6`] does it with the routes and policy rules of the stock kernel; [`FakeHeadend`]
//! only remembers.

mod fake;
mod kernel;
mod normal;

use model::{Color, Policy};

use crate::Error;

pub use fake::{Call, FakeHeadend};
pub use kernel::KernelSeg6;
pub use normal::normalized;

/// What steers packets at a headend.
pub trait Headend: Send {
    /// Steers the policy's packets onto its lists, or, without lists, keeps them on the IGP's path
    /// whatever policies of higher colours say. Whatever its colour steered before ends. Packets
    /// on their way are not lost; what is in place already stays untouched.
    fn install(&mut self, policy: &Policy) -> Result<(), Error>;

    /// Leaves the packets of the colour's policy to the IGP again. No policy of that colour is no
    /// error.
    fn remove(&mut self, color: Color) -> Result<(), Error>;

    /// The policies in place, by colour, each as [`normalized`] gives it. A policy that was
    /// interrupted half-way shows what is there of it, and differs from what was asked for.
    fn installed(&mut self) -> Result<Vec<Policy>, Error>;
}
