//! Skeleton of the SRv6 data plane's program, and the types of its maps.

use crate::abi::Abi;

#[allow(missing_docs, unreachable_pub, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/srv6.skel.rs"));
}

pub use generated::types;
pub(crate) use generated::{OpenSrv6Maps, Srv6Maps, Srv6Skel, Srv6SkelBuilder};

/// Declares that values of these types of `abi.h` may be copied bytewise.
macro_rules! plain {
    ($($name:ident)*) => {$(
        // SAFETY: the types of `abi.h` are repr(C) integers and arrays of them, and each has an
        // assertion there that its fields fill it.
        unsafe impl Abi for types::$name {}
    )*};
}
plain!(control port upper attachment_key vlan_slot attachment source tenant prefix4 prefix6);
plain!(sid_table sid_gtp policy spread outer bucket sid found_sid count unresolved proxy back);
