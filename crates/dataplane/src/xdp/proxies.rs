//! Service functions behind an interface (End.AS, End.AD, End.AM): the path to them, and the
//! programs that handle returning packets.
//!
//! Packets leave XDP through a separate veth, which turns them into skbs, and are then sent from
//! its other end to the function's interface. Packets received on either interface of a function
//! are handled by a program: the kernel forwards none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpf::srv6::types::{self, behavior, limit};
use bpf::{ProxyEnds, Srv6, leave_back, words};
use ipnet::Ipv6Net;
use model::dataplane as file;
use netlink::{
    Batch, Errno, Handle, Link, Mac, Namespace, Offload, VethEnd, add_veth, delete_link,
    set_offload, set_up, sysctl,
};

use super::machine::Unresolved;
use super::pins::{Pins, remove};
use super::resolve::Resolving;
use super::{
    Attachment, Behavior, Endpoint, Forwarding, Map, Proxy, ProxyLink, Tables, Upper, Xdp,
};
use crate::Error;

const INWARDS: &str = "kaido-px-in";
const OUTWARDS: &str = "kaido-px-out";
/// The maximum. The MTU of the port applies.
const MTU: u32 = 65535;
/// Lifetime of a slot in ticks, and the binary logarithm of a tick in ns.
const PROXIED_TICKS: u64 = limit::LIMIT_PROXIED_TICKS.0 as u64;
const PROXIED_TICK_BITS: u32 = limit::LIMIT_PROXIED_TICK_BITS.0;
/// Address families, as the kernel numbers them.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// Time for which returning packets are still handled after the last packet was sent to a function:
/// the lifetime of a slot, rounded up by at most a second.
const LATE: Duration =
    Duration::from_secs(((PROXIED_TICKS << PROXIED_TICK_BITS) / 1_000_000_000) + 1);

impl Resolving<'_> {
    /// Resolves a proxy on this machine.
    pub(super) fn proxy(&mut self, proxy: &file::Proxy, line: u32) -> Proxy {
        let to = self.proxy_link(&proxy.to, line);
        let back =
            if proxy.back == proxy.to { to.clone() } else { self.proxy_link(&proxy.back, line) };
        Proxy { to, back, via: proxy.via }
    }

    fn proxy_link(&mut self, name: &file::Name, line: u32) -> Arc<ProxyLink> {
        let (index, mac, up) = (None, Mac([0; 6]), false);
        let absent = Arc::new(ProxyLink { name: name.clone(), index, mac, up });
        let Some(link) = self.links.named(name) else {
            if !self.links.may_lack {
                self.problems.push(self.no_interface(line, name));
            }
            return absent;
        };
        if link.vrf_table.is_some() {
            self.problems.push(Unresolved::FunctionByVrf { line, name: name.clone() });
            return absent;
        }
        // The MAC address of the loopback interface is all zeros.
        let Some(mac) = link.mac.filter(|mac| *mac != absent.mac) else {
            self.problems.push(Unresolved::NotEthernet { line, port: name.clone() });
            return absent;
        };
        if let Some(Upper { port, tags }) = self.forwarding.uppers.get(&link.index) {
            let key = Attachment { port: *port, tags: *tags };
            if self.forwarding.attachments.contains_key(&key) {
                self.problems.push(Unresolved::IsTenants { line, name: name.clone() });
            }
        }
        let up = self.links.passing.contains(&link.index);
        Arc::new(ProxyLink { name: name.clone(), index: Some(link.index), mac, up })
    }
}

impl Forwarding {
    /// Returns true if the recorded states of interfaces to functions are still correct. `passing`
    /// are the interfaces that pass packets.
    pub fn passes_to_functions(&self, passing: &BTreeSet<u32>) -> bool {
        let links = all(self).flat_map(|proxy| [&proxy.to, &proxy.back]);
        links.into_iter().all(|link| link.index.is_none_or(|at| passing.contains(&at) == link.up))
    }
}

/// Returns all proxies.
fn all(forwarding: &Forwarding) -> impl Iterator<Item = &Proxy> {
    forwarding.sids.values().filter_map(|endpoint| endpoint.behavior.proxy())
}

/// Returns the number of SIDs of proxies.
pub(super) fn count(forwarding: &Forwarding) -> u32 {
    all(forwarding).count() as u32
}

/// Returns the number of interfaces on which packets of End.AD return.
pub(super) fn rings(forwarding: &Forwarding) -> u32 {
    ring_owners(forwarding).len() as u32
}

fn ring_owners(forwarding: &Forwarding) -> BTreeSet<u32> {
    let dynamic = |endpoint: &Endpoint| match &endpoint.behavior {
        Behavior::EndAd { proxy } => proxy.back.index,
        _ => None,
    };
    forwarding.sids.values().filter_map(dynamic).collect()
}

/// Returns the interfaces that lead to functions, in both directions.
fn interfaces(forwarding: &Forwarding) -> BTreeSet<u32> {
    all(forwarding).flat_map(|proxy| [proxy.to.index, proxy.back.index]).flatten().collect()
}

/// Returns true if the interface is one of the veth's ends.
pub(super) fn is_own(link: &Link) -> bool {
    link.name == INWARDS || link.name == OUTWARDS
}

/// Contents of the program's tables of proxies.
#[derive(Default)]
pub(super) struct Proxies {
    numbers: Map<Ipv6Net, u32>,
    /// Keyed by the interface that packets return on.
    rings: BTreeMap<u32, u32>,
    /// Ingress port of packets that did not arrive on one.
    port: u32,
    backs: BTreeSet<u32>,
}

impl Proxies {
    /// Assigns rings to interfaces, and writes the entries of all interfaces, including those that
    /// no SID uses any more, before any SID is changed.
    pub(super) fn begin(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let open = wanted.ports.iter().find(|(_, port)| !port.closed);
        self.port = open.map_or(0, |(index, _)| *index);
        for interface in ring_owners(wanted) {
            let taken: BTreeSet<u32> = self.rings.values().copied().collect();
            let free = (0..).find(|ring| !taken.contains(ring)).unwrap_or(0);
            self.rings.entry(interface).or_insert(free);
        }
        for (sid, _) in
            wanted.sids.iter().filter(|(_, endpoint)| endpoint.behavior.proxy().is_some())
        {
            let taken: BTreeSet<u32> = self.numbers.values().copied().collect();
            let free = (1..).find(|number| !taken.contains(number)).unwrap_or(0);
            self.numbers.entry(*sid).or_insert(free);
        }
        self.say(srv6, wanted)
    }

    fn say(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let mut said: BTreeMap<u32, types::back> =
            interfaces(wanted).into_iter().map(|index| (index, types::back::default())).collect();
        for (sid, endpoint) in &wanted.sids {
            let Some(proxy) = endpoint.behavior.proxy() else { continue };
            let Some(index) = proxy.back.index else { continue };
            let back = said.entry(index).or_default();
            match endpoint.behavior {
                Behavior::EndAd { .. } => back.ring = self.rings.get(&index).map_or(0, |at| at + 1),
                _ => back.proxy = self.numbers.get(sid).copied().unwrap_or(0),
            }
        }
        for (index, back) in &said {
            srv6.backs.set(index, back)?;
        }
        self.backs.extend(said.keys());
        Ok(())
    }

    /// Writes a SID's proxy and returns its number.
    pub(super) fn place(
        &self,
        srv6: &Srv6,
        sid: Ipv6Net,
        proxy: &Proxy,
        number: behavior,
        policy: u32,
        counter: u32,
    ) -> u32 {
        let Some(at) = self.numbers.get(&sid).copied() else { return 0 };
        let (via, family) = match proxy.via {
            None => ([0; 2], 0),
            Some(IpAddr::V4(via)) => ([u64::from(u32::from_ne_bytes(via.octets())), 0], AF_INET),
            Some(IpAddr::V6(via)) => (words(via), AF_INET6),
        };
        let ring = proxy.back.index.and_then(|index| self.rings.get(&index));
        let value = types::proxy {
            via,
            to: proxy.to.index.filter(|_| proxy.to.up && proxy.back.up).unwrap_or(0),
            ring: ring.copied().unwrap_or(0),
            policy,
            counter,
            port: self.port,
            station: proxy.to.mac.0,
            family,
            behavior: number.0 as u8,
            back: proxy.back.index.unwrap_or(0),
        };
        srv6.proxies.write(at as usize, value);
        at
    }

    /// Removes entries that are not wanted any more.
    pub(super) fn end(&mut self, srv6: &Srv6, wanted: &Forwarding) -> Result<(), Error> {
        let is_proxy =
            |sid: &Ipv6Net| wanted.sids.get(sid).is_some_and(|one| one.behavior.proxy().is_some());
        for (_, number) in self.numbers.extract_if(|sid, _| !is_proxy(sid)) {
            srv6.proxies.write(number as usize, types::proxy::default());
        }
        let (owners, stay) = (ring_owners(wanted), interfaces(wanted));
        self.rings.retain(|interface, _| owners.contains(interface));
        for index in self.backs.difference(&stay) {
            srv6.backs.remove(index)?;
        }
        self.backs = stay;
        Ok(())
    }
}

/// The interfaces with a program that handles returning packets.
#[derive(Debug, Default)]
pub(super) struct Backs {
    taken: BTreeSet<u32>,
    /// Interfaces that do not lead to a function any more, and since when.
    old: BTreeMap<u32, Instant>,
    /// True once the interfaces of earlier daemons are known.
    looked: bool,
}

impl Backs {
    /// Attaches the program to the interfaces of `wanted`.
    fn put(
        &mut self,
        srv6: &Srv6,
        wanted: &Forwarding,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        for index in interfaces(wanted) {
            match srv6.take_back(index, &pins.back(index)) {
                Ok(()) => {
                    srv6.function_links.set(&index, &index)?;
                    self.taken.insert(index);
                    self.old.remove(&index);
                }
                // The interface was deleted meanwhile. The next listing of interfaces will show
                // that.
                Err(_) if !handle.links()?.iter().any(|link| link.index == index) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Detaches the program from interfaces on which no late packets are expected any more.
    pub(super) fn leave_old(&mut self, pins: &Pins) {
        self.old.retain(|index, since| {
            let late = since.elapsed() >= LATE;
            if late {
                leave(*index, pins);
            }
            !late
        });
    }

    /// Detaches the program from all interfaces.
    pub(super) fn end(&mut self, pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
        tidy(&Forwarding::default(), self, pins, handle)?;
        for index in std::mem::take(&mut self.old).into_keys() {
            leave(index, pins);
        }
        Ok(())
    }
}

fn leave(index: u32, pins: &Pins) {
    if let Err(error) = leave_back(index, &pins.back(index)) {
        tracing::warn!("a program is left over: {error}");
    }
}

/// Sets up the path to functions if `wanted` has proxies.
pub(super) fn prepare(wanted: &Forwarding, plane: &mut Xdp) -> Result<(), Error> {
    if count(wanted) == 0 {
        return Ok(());
    }
    let (srv6, handle) = (plane.tables.program(), &mut plane.handle);
    if !is_there(handle)? {
        let namespace = Namespace::current()?;
        let end = |name| VethEnd { name, namespace: &namespace, mtu: MTU, mac: None, index: None };
        let ends = add_veth(&end(INWARDS), &end(OUTWARDS));
        handle.request("add the interfaces of proxies", ends)?;
        // Attached before the interfaces are up.
        srv6.attach_proxies(ends_of(handle)?)?;
    }
    // An XDP program may have enabled GRO. Packets with different outer headers must not be merged.
    set_offload(INWARDS, Offload::Gro, false)?;
    for name in [INWARDS, OUTWARDS] {
        // Without link-local addresses, and the messages that come with them.
        sysctl::write(&format!("ipv6/conf/{name}/addr_gen_mode"), "1")?;
    }
    // The ingress interface of lookups in the kernel's tables.
    sysctl::write(&format!("ipv6/conf/{INWARDS}/forwarding"), "1")?;
    let ends = ends_of(handle)?;
    let mut batch = Batch::new();
    batch.push("set up", set_up(ends.inwards));
    batch.push("set up", set_up(ends.outwards));
    Ok(handle.commit(batch)?)
}

/// Attaches a program's own parts, replacing those of an earlier one, and handles returning
/// packets, if its tables have proxies. No packet is sent to a function before that. If the program
/// cannot be attached to its ports, the earlier programs stay in use.
pub(super) fn attach(
    tables: &Tables,
    backs: &mut Backs,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    if count(tables.now()) == 0 {
        return Ok(());
    }
    tables.program().attach_proxies(ends_of(handle)?)?;
    backs.put(tables.program(), tables.now(), pins, handle)
}

/// Returns true if the path is intact and returning packets are handled. A re-created interface may
/// have the same number as its predecessor.
pub(super) fn are_led(tables: &Tables, handle: &mut Handle) -> bool {
    let up = |name| handle.link(name).is_ok_and(|link| link.up);
    let links = &tables.program().function_links;
    let is_taken = |index: &u32| links.get(index).is_ok_and(|found| found.is_some());
    let now = tables.now();
    count(now) == 0
        || ([INWARDS, OUTWARDS].map(up) == [true; 2] && interfaces(now).iter().all(is_taken))
}

/// Removes everything that the state does not need any more.
pub(super) fn tidy(
    now: &Forwarding,
    backs: &mut Backs,
    pins: &Pins,
    handle: &mut Handle,
) -> Result<(), Error> {
    let wanted = interfaces(now);
    let links = handle.links()?;
    if !backs.looked {
        backs.looked = true;
        // Pins require Linux 6.6. Detaching a missing program is harmless.
        let others = links.iter().map(|link| link.index);
        let pinned = pins.backs()?;
        for index in others.filter(|index| !wanted.contains(index) && !pinned.contains(index)) {
            leave(index, pins);
        }
        backs.taken.extend(pinned);
    }
    for index in backs.taken.difference(&wanted) {
        backs.old.insert(*index, Instant::now());
    }
    backs.taken.retain(|index| wanted.contains(index));
    // Of deleted interfaces.
    for index in pins.backs()? {
        if !links.iter().any(|link| link.index == index) {
            remove(&pins.back(index))?;
        }
    }
    if count(now) == 0 && is_there(handle)? {
        let request = delete_link(INWARDS).tolerate(Errno::ENODEV);
        let mut batch = Batch::new();
        batch.push("delete the interfaces of proxies", request);
        handle.commit(batch)?;
    }
    Ok(())
}

fn is_there(handle: &mut Handle) -> Result<bool, Error> {
    match handle.link(INWARDS) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn ends_of(handle: &mut Handle) -> Result<ProxyEnds, Error> {
    let (inwards, outwards) = (handle.link(INWARDS)?.index, handle.link(OUTWARDS)?.index);
    Ok(ProxyEnds { inwards, outwards })
}
