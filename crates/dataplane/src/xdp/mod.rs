//! SRv6 in XDP.

mod outer;

pub use outer::{Form, longest, outer};
