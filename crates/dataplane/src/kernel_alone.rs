//! Kernel-only data plane: the kernel's routes forward, without XDP.

use std::net::IpAddr;
use std::path::Path;

use bpf::attach::Mode;
use bpf::{Count, Drops};
use ipnet::Ipv6Net;
use model::dataplane::File;
use netlink::Handle;

use crate::forwarding::Forwarding;
use crate::xdp::{Pins, netfilter};
use crate::{Counter, Dataplane, Error, Trace};

/// The kernel's own SRv6, configured by routes ([`crate::forwarding::SlowPath::alone`]).
#[derive(Debug)]
pub struct KernelAlone {
    now: Forwarding,
    pins: Pins,
}

impl KernelAlone {
    /// Creates a data plane that forwards nothing yet. XDP programs of an earlier daemon stay
    /// attached until the first change. `pins` is the folder with their pins.
    pub fn new(pins: &Path) -> Self {
        Self { now: Forwarding::default(), pins: Pins::at(pins) }
    }
}

impl Dataplane for KernelAlone {
    fn change_to(&mut self, wanted: Forwarding, _: &File) -> Result<(), Error> {
        let ours = self.pins.attached()?;
        for link in Handle::new()?.links()? {
            let is_port = wanted.ports.contains_key(&link.index) && !ours.contains_key(&link.index);
            if is_port && !link.xdp.is_empty() && !self.now.ports.contains_key(&link.index) {
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

    fn now(&self) -> &Forwarding {
        &self.now
    }

    fn leave(&mut self) -> Result<(), Error> {
        // The pins may belong to the data plane that forwards from now on.
        self.now = Forwarding::default();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.pins.end()
    }

    fn count(&self, _: Counter<'_>) -> Option<Count> {
        None
    }

    fn drops(&self, _: &Ipv6Net) -> Option<Drops> {
        None
    }

    fn mode(&self, _: u32) -> Option<Mode> {
        None
    }

    fn finds_tables(&self) -> bool {
        true
    }

    fn beat(&mut self) -> Vec<(u32, IpAddr)> {
        Vec::new()
    }

    /// Does nothing: no route is cached.
    fn forget_routes(&mut self) {}

    fn keeps(&mut self) -> bool {
        true
    }

    /// Does nothing: the kernel's lookups are exact.
    fn set_exact(&mut self, _: bool) {}

    fn trace(&mut self) -> Option<&mut dyn Trace> {
        None
    }
}
