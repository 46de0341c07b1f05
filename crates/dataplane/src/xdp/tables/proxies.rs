//! The program's tables of proxies: service functions behind an interface (End.AS, End.AD, End.AM).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bpf::srv6::types::{self, behavior};
use bpf::{Srv6, words};
use ipnet::Ipv6Net;

use crate::Error;
use crate::forwarding::{Behavior, Endpoint, Forwarding, Map, Proxy};

/// Address families, as the kernel numbers them.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Returns the number of SIDs of proxies.
pub(in crate::xdp) fn count(forwarding: &Forwarding) -> u32 {
    forwarding.proxies().count() as u32
}

/// Returns the number of interfaces on which packets of End.AD return.
pub(in crate::xdp) fn rings(forwarding: &Forwarding) -> u32 {
    ring_owners(forwarding).len() as u32
}

fn ring_owners(forwarding: &Forwarding) -> BTreeSet<u32> {
    let dynamic = |endpoint: &Endpoint| match &endpoint.behavior {
        Behavior::EndAd { proxy } => proxy.back.index,
        _ => None,
    };
    forwarding.sids.values().filter_map(dynamic).collect()
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
        // Rules of an edge drop sources of the domain.
        let ports = || wanted.ports.iter().filter(|(_, port)| !port.closed);
        let inside = ports().find(|(_, port)| !port.edge).map(|(index, _)| *index);
        let vlan =
            || wanted.domain_vlans.iter().find(|(_, vlan)| !vlan.closed).map(|(index, _)| *index);
        let edge = || ports().next().map(|(index, _)| *index);
        self.port = inside.or_else(vlan).or_else(edge).unwrap_or(0);
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
        let mut said: BTreeMap<u32, types::back> = wanted
            .function_indices()
            .into_iter()
            .map(|index| (index, types::back::default()))
            .collect();
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
            srv6.return_links.set(index, back)?;
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
        let (owners, stay) = (ring_owners(wanted), wanted.function_indices());
        self.rings.retain(|interface, _| owners.contains(interface));
        for index in self.backs.difference(&stay) {
            srv6.return_links.remove(index)?;
        }
        self.backs = stay;
        Ok(())
    }
}
