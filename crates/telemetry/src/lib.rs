//! Measurements of a node: samples of its interfaces' counters, and their export to others.
#![forbid(unsafe_code)]

pub mod prometheus;
mod sampler;
mod window;

pub use netlink::{Error, Sample};
pub use sampler::{InterfaceSample, Sampler};
pub use window::{Counters, Load, Window};
