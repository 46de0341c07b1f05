//! Egress filter for locally generated packets, used while the node has service functions: replies
//! to their packets are sent by their return policy, or dropped.

use std::path::Path;

use crate::front::{HANDLE, put_in_front, take_off};
use crate::tc::Point;
use crate::{Error, Srv6};

impl Srv6 {
    /// Attaches the egress filter to an interface, replacing that of an earlier program.
    /// `link_header`: true if frames of the interface have a link-layer header. The filter outlives this
    /// process: by the pin `at`, or on Linux before 6.6 by the clsact qdisc.
    pub fn guard(&self, interface: u32, link_header: bool, at: &Path) -> Result<(), Error> {
        put_in_front(self.guard_program(link_header), interface, (Point::Egress, HANDLE), at)
            .map_err(|source| Error::Guard { interface, source })
    }
}

/// Detaches the egress filter of any program from an interface, if there is one.
pub fn unguard(interface: u32, at: &Path) -> Result<(), Error> {
    take_off(interface, (Point::Egress, HANDLE), at)
        .map_err(|source| Error::Guard { interface, source })
}
