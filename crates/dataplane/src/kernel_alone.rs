//! Kernel-only data plane: the kernel's routes forward, without XDP.

use std::path::Path;

use model::dataplane::File;
use netlink::Handle;

use crate::forwarding::Forwarding;
use crate::xdp::{Pins, netfilter};
use crate::{Dataplane, Error};

/// The kernel's own SRv6, configured by routes ([`crate::forwarding::SlowPath::alone`]).
#[derive(Debug)]
pub struct KernelAlone {
    now: Forwarding,
    pins: Pins,
}

impl KernelAlone {
    /// Creates a data plane that forwards nothing yet. XDP programs of an earlier daemon stay
    /// attached until the first change. `pins` is the directory with their pins.
    pub fn new(pins: &Path) -> Self {
        Self { now: Forwarding::default(), pins: Pins::at(pins) }
    }
}

impl Dataplane for KernelAlone {
    fn change_to(&mut self, wanted: Forwarding, _: &File) -> Result<(), Error> {
        let ours = self.pins.attached()?;
        for link in Handle::new()?.links()? {
            let is_port = wanted.ports.contains_key(&link.index) && !ours.contains_key(&link.index);
            if !is_port || self.now.ports.contains_key(&link.index) {
                continue;
            }
            // XDP that takes over adds a filter, and must lose no packet by it.
            bpf::prepare_tc(link.index);
            if !link.xdp.is_empty() {
                tracing::warn!(
                    "another XDP program is on `{}`: the kernel does not see the packets that it \
                     takes (`ip link show {0}`)",
                    link.name
                );
            }
        }
        // The routes are installed, so they replace the program of an earlier daemon.
        self.pins.clear()?;
        netfilter::tidy(&Forwarding::default(), &self.pins, &mut Handle::new()?)?;
        self.now = wanted;
        Ok(())
    }

    fn current(&self) -> &Forwarding {
        &self.now
    }

    fn detach(&mut self) -> Result<(), Error> {
        // The pins may belong to the data plane that forwards from now on.
        self.now = Forwarding::default();
        Ok(())
    }

    fn shut_down(&mut self) -> Result<(), Error> {
        self.pins.end()
    }

    fn has_table_lookup(&self) -> bool {
        true
    }
}
