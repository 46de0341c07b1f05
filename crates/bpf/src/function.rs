//! Attachment of the programs where inner packets of service functions enter and leave the kernel.

use crate::attach::put;
use crate::skeleton::types::function_device;
use crate::tc::{Point, attach};
use crate::{Error, Srv6};

/// The two ends of a veth, by interface index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionEnds {
    /// The end where inner packets enter the kernel.
    pub inwards: u32,
    /// The end where inner packets leave the kernel.
    pub outwards: u32,
}

impl Srv6 {
    /// Attaches the programs that set marks and restore outer headers to the two ends, replacing
    /// those of an earlier program.
    pub fn attach_functions(&self, ends: FunctionEnds) -> Result<(), Error> {
        let control = self.control.at(0);
        // SAFETY: the pointers are into the mapping, each is one word, and this is their only
        // writer.
        unsafe {
            (&raw mut (*control).function_in).write_volatile(ends.inwards);
            (&raw mut (*control).function_out).write_volatile(ends.outwards);
        }
        self.function_devices.set(&function_device::DEVICE_NETFILTER.0, &ends.outwards)?;
        let [again, inwards, outwards] = self.function_programs();
        attach("function_out", outwards, ends.outwards, Point::Egress)?;
        attach("function_in", inwards, ends.inwards, Point::Ingress)?;
        // A veth accepts frames from XDP only while it polls. It does so with an XDP program, and
        // at less cost than with GRO.
        put(again, ends.inwards)?;
        self.watch_drops()
    }
}
