//! The kernel alone: its routes forward, and nothing stands in front of them.

use std::path::Path;

use model::dataplane::File;

use crate::xdp::{Forwarding, Pins};
use crate::{Dataplane, Error};

/// The kernel's own SRv6, which does what its routes say ([`crate::xdp::SlowPath::alone`]).
#[derive(Debug)]
pub struct KernelAlone {
    now: Forwarding,
    pins: Pins,
}

impl KernelAlone {
    /// Nothing is forwarded yet. What an earlier daemon left at work in XDP stays there until the
    /// first change; `pins` is the folder of what keeps it.
    pub fn new(pins: &Path) -> Self {
        Self { now: Forwarding::default(), pins: Pins::at(pins) }
    }
}

impl Dataplane for KernelAlone {
    fn change_to(&mut self, wanted: Forwarding, _: &File) -> Result<(), Error> {
        // The routes are there: nobody needs an earlier daemon's program any more.
        self.pins.clear()?;
        self.now = wanted;
        Ok(())
    }

    fn now(&self) -> &Forwarding {
        &self.now
    }

    fn leave(&mut self) -> Result<(), Error> {
        // The pins may be those of whoever forwards from now on.
        self.now = Forwarding::default();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.pins.end()
    }
}
