//! Steering of an application's packets onto a segment list at a headend.
//!
//! [`KernelSeg6`] uses the routes and policy rules of the stock kernel; [`FakeHeadend`] only
//! records calls.

mod fake;
mod kernel;
mod normal;

use model::{Color, Policy};

use crate::Error;

pub use fake::{Call, FakeHeadend};
pub use kernel::KernelSeg6;
pub use normal::normalized;

/// A headend, which steers packets.
pub trait Headend: Send {
    /// Steers the policy's packets onto its lists. Without lists, the packets stay on the IGP's
    /// path, regardless of policies with higher colors. Replaces the previous policy of this
    /// color. No packet in flight is lost, and routes that are unchanged are not touched.
    fn install(&mut self, policy: &Policy) -> Result<(), Error>;

    /// Returns the packets of the color's policy to the IGP. A missing policy is not an error.
    fn remove(&mut self, color: Color) -> Result<(), Error>;

    /// Returns the installed policies, by color, in the form of [`normalized`]. If an installation
    /// was interrupted, the result contains its installed part and differs from the request.
    fn installed(&mut self) -> Result<Vec<Policy>, Error>;
}
