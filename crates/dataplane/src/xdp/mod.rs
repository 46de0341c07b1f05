//! SRv6 in XDP.

mod counters;
mod forwarding;
mod lengths;
mod outer;
mod spread;
mod tables;

pub use forwarding::{
    Attachment, Endpoint, Forwarding, Owner, Policy, PolicyId, Port, Tags, TenantId, Upper,
    Weighted,
};
pub use outer::{Form, longest, outer};
pub use tables::Tables;
