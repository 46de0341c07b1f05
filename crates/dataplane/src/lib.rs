//! Packet forwarding: the data plane of a node ([`Dataplane`]), and the steering of applications at
//! a headend ([`Headend`]).
//!
//! [`forwarding`] is the state that every data plane shares. [`xdp`] depends on it, and it depends
//! on no data plane.
#![forbid(unsafe_code)]

mod error;
mod fake;
pub mod forwarding;
mod kernel_alone;
mod plane;
mod steering;
mod trace;
pub mod xdp;

pub use error::Error;
pub use fake::FakeDataplane;
pub use kernel_alone::KernelAlone;
pub use plane::{Counter, Dataplane};
pub use steering::{Call, FakeHeadend, Headend, KernelSeg6, normalized};
pub use trace::{Counted, Trace};
