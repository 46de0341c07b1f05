//! Service functions and their links: the interfaces of proxies on this machine, and conflicts of a
//! function's SID with the kernel's configuration.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ipnet::IpNet;
use model::dataplane as file;
use netlink::{Link, Mac};

use super::machine::{Links, MAX_STACKED, Unresolved};
use super::stacked::with_lower;
use super::{Attachment, Forwarding, Kernel, Proxy, ProxyLink};
use crate::Error;

/// The interfaces of this machine, and their uses so far.
pub(super) struct Machine<'a> {
    pub(super) links: &'a Links,
    pub(super) forwarding: &'a Forwarding,
    /// Interfaces that receive frames from outside of the domain.
    pub(super) from_outside: &'a BTreeSet<u32>,
}

/// Resolves a proxy on this machine.
pub(super) fn proxy(
    proxy: &file::Proxy,
    line: u32,
    machine: &Machine<'_>,
    problems: &mut Vec<Unresolved>,
) -> Proxy {
    let mut link = |name| proxy_link(name, line, machine, problems);
    let to = link(&proxy.to);
    let back = if proxy.back == proxy.to { to.clone() } else { link(&proxy.back) };
    Proxy { to, back, via: proxy.via }
}

fn proxy_link(
    name: &file::Name,
    line: u32,
    machine: &Machine<'_>,
    problems: &mut Vec<Unresolved>,
) -> Arc<ProxyLink> {
    let links = machine.links;
    match usable(name, line, machine) {
        Ok((index, mac)) => {
            let (index, up) = (Some(index), links.passing.contains(&index));
            Arc::new(ProxyLink { name: name.clone(), index, mac, up })
        }
        // The function may have created it again as one of another kind.
        Err(problem) => {
            problems.extend((!links.may_lack(name)).then_some(problem));
            let (index, mac, up) = (None, Mac::default(), false);
            Arc::new(ProxyLink { name: name.clone(), index, mac, up })
        }
    }
}

/// Returns the index and the MAC address of an interface that can lead to a function.
fn usable(name: &file::Name, line: u32, machine: &Machine<'_>) -> Result<(u32, Mac), Unresolved> {
    let Machine { links, forwarding, .. } = machine;
    let link = links.named(name).ok_or_else(|| links.no_interface(line, name))?;
    if link.vrf_table.is_some() {
        return Err(Unresolved::FunctionByVrf { line, name: name.clone() });
    }
    // The MAC address of the loopback interface is all zeros.
    let mac = link.mac.filter(|mac| *mac != Mac::default());
    let mac = mac.ok_or_else(|| Unresolved::NotEthernet { line, port: name.clone() })?;
    if forwarding.domain_vlans.contains_key(&link.index) {
        return Err(Unresolved::InDomain { line, name: name.clone() });
    }
    if is_reached_by_others(link, machine) {
        return Err(Unresolved::IsTenants { line, name: name.clone() });
    }
    Ok((link.index, mac))
}

/// Kinds of interfaces whose frames come from the interfaces below, or from their other end, alone. The
/// first one is that of network cards.
const SIMPLE_KINDS: [&str; 15] = [
    "", "veth", "netkit", "macsec", "tun", "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap",
    "bridge", "bond", "team", "dsa", "dummy",
];

/// Returns true if a tenant, or a host at an edge, chooses which frames arrive on an interface: it
/// lies on their frames, with other tags or another MAC address, or they reach it through a bridge. If
/// there is an outside, an interface of a kind that is not known here may lead there, too.
fn is_reached_by_others(link: &Link, machine: &Machine<'_>) -> bool {
    let Machine { links, forwarding, from_outside } = machine;
    if from_outside.contains(&link.index) {
        return true;
    }
    let below = with_lower([link.index].into(), &links.links);
    let is_other = |link: &Link| !SIMPLE_KINDS.contains(&&*link.kind);
    if !from_outside.is_empty()
        && links.links.iter().any(|link| below.contains(&link.index) && is_other(link))
    {
        return true;
    }
    let below = |link: &&Link| links.indexed(link.lower?);
    let chain = std::iter::successors(Some(link), below).take(MAX_STACKED);
    // Tags of the interface's frames on each interface below, from the outer one on.
    let mut tags = VecDeque::new();
    for link in chain {
        if let Some(vlan) = link.vlan {
            tags.push_front(vlan.id);
        }
        let (outer, inner) = (tags.front(), tags.get(1));
        // Whose tag comes first chooses the second one.
        let is_tenants = |frames: &Attachment| {
            frames.port == link.index
                && outer == Some(&frames.tags.outer)
                && (frames.tags.inner == 0 || inner.is_none_or(|tag| *tag == frames.tags.inner))
        };
        if forwarding.attachments.keys().any(is_tenants) {
            return true;
        }
    }
    false
}

impl Forwarding {
    /// Returns true if the recorded states of interfaces to functions are still correct. `passing`
    /// are the interfaces that pass packets.
    pub fn passes_to_functions(&self, passing: &BTreeSet<u32>) -> bool {
        let links = self.proxies().flat_map(|proxy| [&proxy.to, &proxy.back]);
        links.into_iter().all(|link| link.index.is_none_or(|at| passing.contains(&at) == link.up))
    }

    /// Returns the interfaces that lead to functions, without those that do not exist.
    pub fn function_interfaces(&self) -> impl Iterator<Item = (u32, &file::Name)> {
        let links = self.proxies().flat_map(|proxy| [&proxy.to, &proxy.back]);
        links.filter_map(|link| Some((link.index?, &link.name)))
    }

    /// Returns the indices of these interfaces.
    pub fn function_indices(&self) -> BTreeSet<u32> {
        self.function_interfaces().map(|(index, _)| index).collect()
    }

    /// Returns all proxies.
    pub fn proxies(&self) -> impl Iterator<Item = &Proxy> {
        self.sids.values().filter_map(|endpoint| endpoint.behavior.proxy())
    }
}

/// Rejects functions for which the kernel has another route or an address: a packet that no program
/// processes would follow it and bypass the rules.
pub fn check_functions(wanted: &Forwarding, kernel: &Kernel) -> Result<(), Error> {
    for (sid, _) in wanted.sids.iter().filter(|(_, endpoint)| endpoint.is_function()) {
        let is_within = |net: &IpNet| matches!(net, IpNet::V6(net) if sid.contains(net));
        let route = kernel.routes.iter().find(|route| is_within(&route.destination));
        let address = kernel.addresses.iter().find(|address| is_within(&IpNet::from(**address)));
        let what = match (address, route) {
            (Some(address), _) => format!("this node's address {address}"),
            (None, Some(route)) => format!("a route to {}", route.destination),
            (None, None) => continue,
        };
        return Err(Error::FunctionTaken { sid: *sid, what });
    }
    Ok(())
}
