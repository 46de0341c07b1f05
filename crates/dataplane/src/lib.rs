//! Packet forwarding: the data plane of a node ([`Dataplane`]), and the steering of applications at
//! a headend ([`Headend`]).
#![forbid(unsafe_code)]

mod error;
mod fake;
mod headend;
mod kernel;
mod plane;
pub mod xdp;

pub use error::Error;
pub use fake::FakeDataplane;
pub use headend::{Call, FakeHeadend, Headend, KernelSeg6, normalized};
pub use kernel::KernelAlone;
pub use plane::{Counter, Dataplane};
