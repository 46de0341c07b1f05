//! Ingress filter of a port: drops packets that the XDP program has left to the kernel, and whose checksum a
//! device would write into their headers.

use std::path::Path;

use crate::front::{PORT_FILTER, put_in_front, take_off};
use crate::tc::Point;
use crate::{Error, Srv6};

impl Srv6 {
    /// Attaches the filter to a port. It outlives this process: by the pin `at`, or on Linux before 6.6
    /// by the clsact qdisc.
    pub fn filter_port(&self, interface: u32, at: &Path) -> Result<(), Error> {
        put_in_front(self.port_filter(), interface, (Point::Ingress, PORT_FILTER), at)
            .map_err(|source| Error::Filter { interface, source })
    }
}

/// Detaches the filter of any program from an interface, if there is one.
pub fn unfilter_port(interface: u32, at: &Path) -> Result<(), Error> {
    take_off(interface, (Point::Ingress, PORT_FILTER), at)
        .map_err(|source| Error::Filter { interface, source })
}
