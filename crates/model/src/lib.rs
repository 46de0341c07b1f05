//! The specification: what a network, a segment list and an application are.
//!
//! Everything here is a parsed and validated value. Nothing here does I/O.
#![forbid(unsafe_code)]

mod bandwidth;
mod flow;
mod policy;
mod sid;

pub use bandwidth::{Bandwidth, BandwidthError};
pub use flow::{Class, Dscp, DscpError, Flow, PortRange, PortRangeError, Protocol};
pub use policy::{Color, Policy};
pub use sid::{Locator, LocatorError, SegmentList, Sid, function};
