//! Where inner packets of service functions enter the kernel and leave it.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::attach::put;
use crate::srv6::types::function_device;
use crate::tc::{Point, attach};
use crate::{Error, Srv6};

/// The two ends of a veth, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionEnds {
    /// The end by which inner packets come into the kernel.
    pub inwards: u32,
    /// The end by which they leave it.
    pub outwards: u32,
}

impl Srv6 {
    /// Leads inner packets by the two ends: puts the programs there that give marks and outer
    /// headers, in place of those of an earlier program.
    pub fn attach_functions(&self, ends: FunctionEnds) -> Result<(), Error> {
        let control = self.control.at(0);
        // SAFETY: the pointers are into the mapping, each is one word, and this is their only writer.
        unsafe {
            (&raw mut (*control).function_in).write_volatile(ends.inwards);
            (&raw mut (*control).function_out).write_volatile(ends.outwards);
        }
        self.function_devices.set(&function_device::DEVICE_NETFILTER.0, &ends.outwards)?;
        let [again, inwards, outwards] = self.function_programs();
        attach("function_out", outwards, ends.outwards, Point::Egress)?;
        attach("function_in", inwards, ends.inwards, Point::Ingress)?;
        // A veth takes frames from XDP only while it polls: with a program it does, and more
        // cheaply than with GRO.
        put(again, ends.inwards)?;
        self.watch_drops()
    }
}

/// What is in front of a tag: 15 bits that are hard to guess, not 0. That the tag is a packet's own its
/// slot says.
pub(crate) fn magic() -> u32 {
    (random() & 0x7fff).max(1)
}

/// A number that is hard to guess.
pub(crate) fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
