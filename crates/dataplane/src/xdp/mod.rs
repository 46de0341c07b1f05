//! SRv6 in XDP.

mod attach;
mod filters;
mod functions;
mod pins;
mod plane;
mod program;
mod tables;
mod tracing;

pub(crate) use functions::netfilter;
pub use functions::netfilter::function_settings;
pub(crate) use pins::Pins;
pub use program::Xdp;
pub use tables::{Tables, outer};
