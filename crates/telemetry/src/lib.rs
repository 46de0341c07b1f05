//! What a node measures: its interfaces' counters, as often as it is asked. And how others are told of counters.
#![forbid(unsafe_code)]

pub mod prometheus;
mod sampler;
mod window;

pub use netlink::{Error, Sample};
pub use sampler::{InterfaceSample, Sampler};
pub use window::{Counters, Load, Window};
