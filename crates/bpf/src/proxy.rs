//! Attachment of the programs where inner packets leave for service functions behind an interface,
//! and return from them.

use std::path::Path;

use crate::attach::put;
use crate::front::{HANDLE, put_in_front, take_off};
use crate::skeleton::types::function_device;
use crate::tc::{Point, attach};
use crate::{Error, Srv6};

/// The two ends of a veth, by interface index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyEnds {
    /// The end where packets enter the kernel.
    pub inwards: u32,
    /// The end that packets are sent to.
    pub outwards: u32,
}

impl Srv6 {
    /// Sends packets of proxies through the two ends, replacing an earlier program.
    pub fn attach_proxies(&self, ends: ProxyEnds) -> Result<(), Error> {
        let control = self.control.at(0);
        // SAFETY: the pointers are into the mapping, each is one word, and this is their only
        // writer.
        unsafe {
            (&raw mut (*control).proxy_in).write_volatile(ends.inwards);
            (&raw mut (*control).proxy_out).write_volatile(ends.outwards);
        }
        self.function_devices.set(&function_device::DEVICE_PROXIES.0, &ends.outwards)?;
        let [again, inwards, _] = self.proxy_programs();
        attach("proxy_in", inwards, ends.inwards, Point::Ingress)?;
        // A veth accepts frames from XDP only while it polls. With an XDP program it does.
        put(again, ends.inwards)
    }

    /// Handles packets received on an interface that leads to a function, replacing an earlier
    /// program. `at`: the pin that keeps the attachment.
    pub fn take_back(&self, interface: u32, at: &Path) -> Result<(), Error> {
        let [_, _, back] = self.proxy_programs();
        put_in_front(back, interface, (Point::Ingress, HANDLE), at)
            .map_err(|source| Error::Back { interface, source })
    }
}

/// Detaches the return program of an interface: the kernel processes its packets again.
pub fn detach_return(interface: u32, at: &Path) -> Result<(), Error> {
    take_off(interface, (Point::Ingress, HANDLE), at)
        .map_err(|source| Error::Back { interface, source })
}
