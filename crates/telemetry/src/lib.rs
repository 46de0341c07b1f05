//! What a node measures: its interfaces' counters, as often as it is asked.
#![forbid(unsafe_code)]

mod sampler;
mod window;

pub use netlink::{Error, Sample};
pub use sampler::{InterfaceSample, Sampler};
pub use window::{Counters, Load, Window};
