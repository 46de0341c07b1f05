//! The kernel of the data plane's namespace: what it says, and the slow path that it keeps.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use bpf::Srv6;
use bpf::attach::Mode;
use dataplane::xdp::{Kernel, Present, Refused, SlowPath};
use netlink::{GenericHandle, Handle, Link, NextHop, SLOW_PATH, XdpMode};

use crate::Error;

/// What the kernel said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) kernel: Kernel,
    /// What it has of the slow path.
    pub(crate) present: Present,
    /// Whether a packet's way depends on more than its destination.
    pub(crate) exact: bool,
}

/// The kernel.
pub(crate) struct KernelSide {
    handle: Handle,
    seg6: GenericHandle,
    /// What it was told to keep for the slow path.
    kept: SlowPath,
    /// What it would not take since the last file was applied.
    refused: Refused,
    /// The outer source address, where it was set for the slow path; kept in a file, so that
    /// whoever comes after a daemon that was killed knows.
    source: Option<Ipv6Addr>,
    source_file: PathBuf,
}

impl KernelSide {
    pub(crate) fn new(state: &Path) -> Result<Self, Error> {
        let source_file = state.join("tunsrc");
        let source = std::fs::read_to_string(&source_file).ok();
        Ok(Self {
            handle: Handle::new()?,
            seg6: GenericHandle::new()?,
            kept: SlowPath::default(),
            refused: Refused::default(),
            source: source.and_then(|text| text.trim().parse().ok()),
            source_file,
        })
    }

    /// Lists everything. What the program can do depends on the kernel too.
    pub(crate) fn look(&mut self, program: &Srv6) -> Result<Seen, Error> {
        let source = self.seg6.tunnel_source()?;
        let mut list = self.handle.all_routes()?;
        list.routes.retain(|route| route.protocol != SLOW_PATH);
        let rules = self.handle.rule_owners()?;
        let present = Present::list(&mut self.handle)?;
        let addresses = self.handle.addresses()?;
        let kernel = Kernel {
            routes: list.routes,
            links: self.handle.links()?.into_iter().map(settled).collect(),
            addresses: addresses.iter().map(|a| a.net.addr()).collect(),
            addresses_of: addresses.iter().map(|a| (a.interface, a.net.addr())).collect(),
            // Ours says nothing of what the kernel's own routes are to have.
            source: Some(source).filter(|s| !s.is_unspecified() && Some(*s) != self.source),
            has_rules: rules.others,
            finds_tables: program.finds_tables(),
        };
        Ok(Seen { kernel, present, exact: list.by_more || rules.own || rules.others })
    }

    /// Whether the outer source address is another than was seen: nobody tells when it changes.
    pub(crate) fn has_another_source(&mut self, seen: &Kernel) -> Result<bool, Error> {
        let source = self.seg6.tunnel_source()?;
        let source = Some(source).filter(|s| !s.is_unspecified() && Some(*s) != self.source);
        Ok(source != seen.source)
    }

    /// Where each interface's XDP program runs.
    pub(crate) fn xdp_modes(&mut self) -> Result<BTreeMap<u32, Mode>, Error> {
        let mode = |link: &Link| {
            let xdp = link.xdp.first()?;
            let mode = if xdp.mode == XdpMode::Generic { Mode::Generic } else { Mode::Native };
            Some((link.index, mode))
        };
        Ok(self.handle.links()?.iter().filter_map(mode).collect())
    }

    /// Whether it has of the slow path what it was told to keep.
    pub(crate) fn keeps(&self, seen: &Seen) -> bool {
        self.kept.is(&seen.present)
    }

    /// What it is to keep for `forwarding`, which then says so.
    pub(crate) fn slow_path(
        &mut self,
        forwarding: &mut dataplane::xdp::Forwarding,
        seen: &Seen,
    ) -> SlowPath {
        let handle = &mut self.handle;
        // Without a route to the segment any interface does: the kernel looks the packet up again.
        let mut interface = |segment: Ipv6Addr| {
            let hop = handle.next_hop(IpAddr::V6(segment)).ok().flatten();
            hop.map(|hop: NextHop| hop.interface)
        };
        let mut path = SlowPath::of(forwarding, &seen.kernel, &mut interface);
        path.leave_out(&self.refused);
        path.mark(forwarding);
        path
    }

    /// A new file may have what was refused before.
    pub(crate) fn forget_refusals(&mut self) {
        self.refused = Refused::default();
    }

    /// Gives the kernel what it lacks; what it refuses, `forwarding` says no more that it has.
    pub(crate) fn extend(
        &mut self,
        path: &mut SlowPath,
        forwarding: &mut dataplane::xdp::Forwarding,
        seen: &Seen,
    ) -> Result<(), Error> {
        if path.encapsulates() && seen.kernel.source.is_none() {
            self.set_source(Some(forwarding.source))?;
        }
        let refused = path.extend(&mut self.handle, &seen.present)?;
        refused.unmark(forwarding);
        path.leave_out(&refused);
        self.refused.add(&refused);
        Ok(())
    }

    /// Sets the outer source address, or gives it up.
    fn set_source(&mut self, source: Option<Ipv6Addr>) -> Result<(), Error> {
        if source == self.source {
            return Ok(());
        }
        let failed = |source| Error::State { path: self.source_file.clone(), source };
        if let Some(source) = source {
            std::fs::write(&self.source_file, source.to_string()).map_err(failed)?;
        }
        self.seg6.set_tunnel_source(source.unwrap_or(Ipv6Addr::UNSPECIFIED))?;
        if source.is_none() {
            std::fs::remove_file(&self.source_file).map_err(failed)?;
        }
        self.source = source;
        Ok(())
    }

    /// Lets the kernel keep `path` and no more.
    pub(crate) fn shrink(&mut self, path: SlowPath) -> Result<(), Error> {
        let present = Present::list(&mut self.handle)?;
        path.shrink(&mut self.handle, &present)?;
        if !path.encapsulates() {
            self.set_source(None)?;
        }
        self.kept = path;
        Ok(())
    }

    /// Undoes what [`KernelSide::extend`] did.
    pub(crate) fn restore(&mut self, seen: &Seen) {
        // The error that led here is the one to report; what is left over goes with the next change.
        if let Err(error) = seen.present.restore(&mut self.handle) {
            tracing::warn!("the kernel's routes differ: {}", api::in_one_line(&error));
        }
    }

    /// Takes everything back.
    pub(crate) fn leave(&mut self) -> Result<(), Error> {
        self.shrink(SlowPath::default())
    }

    /// Asks for a neighbour, or whether it is still there.
    pub(crate) fn probe(&mut self, interface: u32, address: IpAddr) -> Result<(), Error> {
        Ok(self.handle.probe_neighbour(interface, address)?)
    }
}

/// A link without what changes by itself.
fn settled(link: Link) -> Link {
    Link {
        xdp: Vec::new(),
        stats: netlink::LinkStats::default(),
        carrier: false,
        operational: false,
        ..link
    }
}
