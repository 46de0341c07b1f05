//! Where inner packets leave for service functions behind an interface, and come back from them.

use std::path::Path;

use crate::attach::put;
use crate::front::{put_in_front, take_off};
use crate::srv6::types::function_device;
use crate::tc::{Point, attach};
use crate::{Error, Srv6};

/// The two ends of a veth, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyEnds {
    /// The end by which packets come into the kernel.
    pub inwards: u32,
    /// The end that they are sent into.
    pub outwards: u32,
}

impl Srv6 {
    /// Leads proxies' packets by the two ends, in place of an earlier program.
    pub fn attach_proxies(&self, ends: ProxyEnds) -> Result<(), Error> {
        let control = self.control.at(0);
        // SAFETY: the pointers are into the mapping, each is one word, and this is their only writer.
        unsafe {
            (&raw mut (*control).proxy_in).write_volatile(ends.inwards);
            (&raw mut (*control).proxy_out).write_volatile(ends.outwards);
        }
        self.function_devices.set(&function_device::DEVICE_PROXIES.0, &ends.outwards)?;
        let [again, inwards, _] = self.proxy_programs();
        attach("proxy_in", inwards, ends.inwards, Point::Ingress)?;
        // A veth takes frames from XDP only while it polls: with a program it does.
        put(again, ends.inwards)
    }

    /// Takes what comes in by an interface that leads to a function, in place of an earlier program.
    /// `at`: the pin that keeps it.
    pub fn take_back(&self, interface: u32, at: &Path) -> Result<(), Error> {
        let [_, _, back] = self.proxy_programs();
        put_in_front(back, interface, Point::Ingress, at)
            .map_err(|source| Error::Back { interface, source })
    }
}

/// Leaves what comes in by an interface to the kernel again.
pub fn leave_back(interface: u32, at: &Path) -> Result<(), Error> {
    take_off(interface, Point::Ingress, at).map_err(|source| Error::Back { interface, source })
}
