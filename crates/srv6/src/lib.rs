//! SRv6 as values: SIDs and locators, endpoint behaviors with their flavors, and headends'
//! encapsulation modes.
//!
//! [`TABLE`] is the single description of the endpoint behaviors. The data plane file's grammar,
//! text output, the checks of kernel-only forwarding and the documentation take it from there.
#![forbid(unsafe_code)]

mod behavior;
mod encap;
mod flavor;
mod mobile;
mod sid;
mod table;

pub use behavior::{Behavior, Kind, LookUp, Proxy, Resolve};
pub use encap::{EncapMode, Form, Payload};
pub use flavor::{CsidLengths, Flavor, Flavors};
pub use mobile::{
    GtpTunnel, MAX_SOURCE_ARGS, PduSession, SESSION_BITS, SESSION4_BITS, SOURCE_ARGS, SessionArgs,
};
pub use sid::{Locator, LocatorError, SegmentList, Sid, function};
pub use table::{Info, Kernel, TABLE, functions};
