//! The kernel of the data plane's namespace, over netlink.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dataplane::forwarding::{Kernel, Present, Refused, SlowPath};
use dataplane::xdp::Xdp;
use dataplane::{Dataplane, KernelAlone};
use ipnet::Ipv6Net;
use model::dataplane::Dataplane as Which;
use netlink::{Event, GenericHandle, Handle, Link, Monitor, SLOW_PATH};
use nix::errno::Errno;

use crate::Error;
use crate::guard::{Guard, Guarded};
use crate::host::{Host, Interface, Recorded, Seen};
use crate::probe;

/// The kernel.
pub(crate) struct KernelSide {
    handle: Handle,
    seg6: GenericHandle,
    monitor: Monitor,
    /// The routes that it is to keep for the data plane.
    kept: SlowPath,
    /// The outer source address, if it was set for the data plane. It is also stored in a file, so
    /// that the successor of a killed daemon knows it.
    source: Option<Ipv6Addr>,
    source_file: PathBuf,
    /// File with the interfaces for the next daemon.
    interfaces: PathBuf,
    /// The directory of the pins that keep ports attached to XDP.
    pins: PathBuf,
    guard: Guard,
}

impl KernelSide {
    /// Opens the kernel of the calling thread's namespace. `state` is the directory of the data
    /// that a later daemon needs.
    pub(crate) fn new(state: &Path) -> Result<Self, Error> {
        // Subscribe before the first listing, so that no change between the two is missed.
        let monitor = Monitor::new()?;
        let source_file = state.join("tunsrc");
        let source = std::fs::read_to_string(&source_file).ok();
        Ok(Self {
            handle: Handle::new()?,
            seg6: GenericHandle::new()?,
            monitor,
            kept: SlowPath::default(),
            source: source.and_then(|text| text.trim().parse().ok()),
            source_file,
            interfaces: state.join("interfaces"),
            pins: state.join("bpf"),
            guard: Guard::new(state),
        })
    }

    /// Sets the outer source address, or resets it.
    fn set_source(&mut self, source: Option<Ipv6Addr>) -> Result<(), Error> {
        if source == self.source {
            return Ok(());
        }
        let failed = |source| Error::State { path: self.source_file.clone(), source };
        if let Some(source) = source {
            private::replace(&self.source_file, source.to_string().as_bytes()).map_err(failed)?;
        }
        // Do not reset an address that the administrator has set since.
        if source.is_some() || Some(self.seg6.tunnel_source()?) == self.source {
            self.seg6.set_tunnel_source(source.unwrap_or(Ipv6Addr::UNSPECIFIED))?;
        }
        if source.is_none() {
            std::fs::remove_file(&self.source_file).map_err(failed)?;
        }
        self.source = source;
        Ok(())
    }
}

impl Host for KernelSide {
    fn load(&mut self, which: Which) -> Result<Box<dyn Dataplane>, Error> {
        if which == Which::Kernel {
            return Ok(Box::new(KernelAlone::new(&self.pins)));
        }
        let plane = Xdp::load(&self.pins)?;
        let mounts = |process| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        if let (Some(own), Some(machines)) = (mounts("self"), mounts("1"))
            && own != machines
            && !is_mounted_outside(&self.pins)
        {
            tracing::warn!(
                "this daemon is in a mount namespace of its own: with that its pins go, and its \
                 ports stop forwarding (docs/dataplane.md)"
            );
        }
        Ok(Box::new(plane))
    }

    fn look(&mut self, finds_tables: bool) -> Result<Seen, Error> {
        let source = self.seg6.tunnel_source()?;
        let mut list = self.handle.all_routes()?;
        list.routes.retain(|route| route.protocol != SLOW_PATH);
        let rules = self.handle.rule_owners()?;
        let present = Present::list(&mut self.handle)?;
        let addresses = self.handle.addresses()?;
        let links = self.handle.links()?;
        let passing = links.iter().filter(|link| link.up && link.carrier);
        let passing = passing.map(|link| link.index).collect();
        let sids = list.sids.iter().filter(|sid| sid.protocol != SLOW_PATH);
        let kernel = Kernel {
            sids: sids.map(|sid| (sid.table, sid.destination)).collect(),
            routes: list.routes,
            links: links.into_iter().map(settled).collect(),
            addresses: addresses.iter().map(|a| a.net.addr()).collect(),
            addresses_of: addresses.iter().map(|a| (a.interface, a.net.addr())).collect(),
            // Our source address is not part of the configuration of the kernel routes.
            source: Some(source).filter(|s| !s.is_unspecified() && Some(*s) != self.source),
            has_rules: rules.others,
            finds_tables,
        };
        let exact = list.by_more || rules.own || rules.others;
        let locked_mtus = list.locks_mtu;
        Ok(Seen { kernel, present, source: self.source, exact, locked_mtus, passing })
    }

    fn has_changed_silently(
        &mut self,
        seen: &Kernel,
        ports: &BTreeSet<u32>,
    ) -> Result<bool, Error> {
        let source = self.seg6.tunnel_source()?;
        let source = Some(source).filter(|s| !s.is_unspecified() && Some(*s) != self.source);
        let mut ports = seen.links.iter().filter(|link| ports.contains(&link.index));
        let differs = |link: &Link| {
            requires_hmac(&link.name).is_some_and(|requires| requires != link.requires_hmac)
        };
        Ok(source != seen.source || ports.any(differs))
    }

    fn leave_tags(&mut self, port: u32) {
        // Not every driver has these settings. If it has, `strips_tags` shows the result.
        for name in with_members(port) {
            if let Err(error) = netlink::leave_tags(&name) {
                tracing::debug!("{}", api::in_one_line(&error));
            }
        }
    }

    fn strips_tags(&self, port: u32) -> bool {
        with_members(port).iter().any(|name| netlink::strips_tags(name).unwrap_or(false))
    }

    fn close_port(&mut self, index: u32) -> Result<(), Error> {
        let what = format!("set interface {index} down");
        // It may be gone.
        Ok(self.handle.request(what, netlink::set_down(index).tolerate(Errno::ENODEV))?)
    }

    fn guard(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        self.guard.set(interfaces)
    }

    fn check_guard(&mut self, interfaces: &Guarded) -> Result<(), Error> {
        self.guard.check(interfaces)
    }

    fn keep_guard(&mut self) {
        self.guard.restore();
    }

    fn firewall(&mut self, ports: &BTreeSet<&str>) -> Vec<String> {
        probe::function_rules(ports)
    }

    fn event(&mut self, wait: Duration) -> Result<Option<Event>, Error> {
        Ok(self.monitor.wait(wait)?)
    }

    fn interface_to(&mut self, segment: Ipv6Addr) -> Option<u32> {
        let hop = self.handle.next_hop(IpAddr::V6(segment)).ok().flatten();
        hop.map(|hop| hop.interface)
    }

    fn probe(&mut self, interface: u32, address: IpAddr) -> Result<(), Error> {
        Ok(self.handle.probe_neighbor(interface, address)?)
    }

    fn is_intact(&self, seen: &Seen) -> bool {
        self.kept.is(&seen.present)
    }

    fn extend(
        &mut self,
        routes: &SlowPath,
        source: Ipv6Addr,
        seen: &Seen,
    ) -> Result<Refused, Error> {
        if routes.encapsulates() && seen.kernel.source.is_none() {
            self.set_source(Some(source))?;
        }
        Ok(routes.extend(&mut self.handle, &seen.present)?)
    }

    fn announce(&mut self, functions: &BTreeMap<Ipv6Net, bool>) -> Result<(), Error> {
        Ok(self.kept.announce(functions, &mut self.handle)?)
    }

    fn shrink(&mut self, routes: SlowPath) -> Result<(), Error> {
        let present = Present::list(&mut self.handle)?;
        routes.shrink(&mut self.handle, &present)?;
        if !routes.encapsulates() {
            self.set_source(None)?;
        }
        self.kept = routes;
        Ok(())
    }

    fn record(&mut self, interfaces: &Recorded) -> Result<(), Error> {
        let failed = |source| Error::State { path: self.interfaces.clone(), source };
        if interfaces.is_empty() {
            return match std::fs::remove_file(&self.interfaces) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed.map_err(failed),
            };
        }
        let line = |(index, Interface { name, mac }): (&u32, &Interface)| {
            format!("{index} {name} {mac}\n")
        };
        let text: String = interfaces.iter().map(line).collect();
        private::replace(&self.interfaces, text.as_bytes()).map_err(failed)
    }

    fn recorded(&mut self) -> Recorded {
        let file = private::open_own(&self.interfaces);
        let text = file.and_then(std::io::read_to_string).unwrap_or_default();
        let parse = |line: &str| {
            let mut words = line.split(' ');
            let (index, name) = (words.next()?.parse().ok()?, words.next()?.into());
            let mac = words.next()?.to_owned();
            Some((index, Interface { name, mac }))
        };
        text.lines().filter_map(parse).collect()
    }

    fn restore(&mut self, seen: &Seen) {
        // Report the error that led here. The next change removes the remaining routes.
        let restored = seen.present.restore(&mut self.handle).map_err(Error::from);
        if let Err(error) = restored.and_then(|()| self.set_source(seen.source)) {
            tracing::warn!("the kernel's routes differ: {}", api::in_one_line(&error));
        }
    }
}

/// Returns true if the mount namespace of PID 1 has a file system mounted at `pins`: that mount
/// outlives this process.
fn is_mounted_outside(pins: &Path) -> bool {
    // Other users can mount at paths that are not UTF-8.
    let mounts = std::fs::read("/proc/1/mounts").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let at = |line: &str| line.split(' ').nth(1).is_some_and(|path| Path::new(path) == pins);
    mounts.lines().any(at)
}

/// Returns true if the kernel drops packets on this interface if their SRH has no HMAC. `None` if
/// the parameter does not exist: the kernel lacks HMAC support, or the interface is gone or has no
/// IPv6.
fn requires_hmac(interface: &str) -> Option<bool> {
    let value = netlink::sysctl::read(&format!("ipv6/conf/{interface}/seg6_require_hmac"));
    value.ok()?.parse::<i32>().ok().map(|value| value > 0)
}

/// Returns the link without its volatile state.
fn settled(link: Link) -> Link {
    Link {
        xdp: Vec::new(),
        stats: netlink::LinkStats::default(),
        carrier: false,
        operational: false,
        ..link
    }
}

/// Names of a port and of the interfaces whose frames arrive on it.
fn with_members(port: u32) -> Vec<String> {
    let links = Handle::new().and_then(|mut handle| handle.links()).unwrap_or_default();
    let members = netlink::with_members(&links, port);
    let name = |index: u32| links.iter().find(|link| link.index == index).map(|l| l.name.clone());
    members.into_iter().filter_map(name).collect()
}
