//! What forwards packets: a headend's steering of applications ([`Headend`]), and SRv6 in XDP
//! ([`xdp`]).
#![forbid(unsafe_code)]

mod error;
mod headend;
pub mod xdp;

pub use error::Error;
pub use headend::{Call, FakeHeadend, Headend, KernelSeg6, normalized};
