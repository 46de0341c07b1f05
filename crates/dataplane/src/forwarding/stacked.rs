//! Interfaces of this machine that frames of others reach, and tunnels.

use std::collections::BTreeSet;

use netlink::Link;

use super::Forwarding;

/// Adds the interfaces that frames of the given ones may reach:
///
/// - interfaces stacked on them, and their bridges, bonds, teams and HSR or PRP devices;
/// - interfaces behind such a bridge, through a veth pair;
/// - all interfaces of an Open vSwitch with such a port, since its flows are not known here.
///
/// Rules have no effect on a VRF's ports.
pub(in crate::forwarding) fn with_stacked(
    mut found: BTreeSet<u32>,
    links: &[Link],
    follows: impl Fn(&Link) -> bool,
) -> BTreeSet<u32> {
    loop {
        let in_found = |master: Option<u32>| master.is_some_and(|master| found.contains(&master));
        let ports = links.iter().filter(|link| found.contains(&link.index));
        let masters: BTreeSet<u32> = ports.filter_map(|link| link.master).collect();
        let bridged = links.iter().filter(|link| in_found(link.master));
        let bridged: BTreeSet<u32> = bridged.map(|link| link.index).collect();
        let is_ovs = |link: &Link| link.kind == "openvswitch";
        let has_ovs = links.iter().any(|link| is_ovs(link) && masters.contains(&link.index));
        let is_fed = |link: &&Link| {
            link.lower.iter().chain(&link.slaves).any(|lower| found.contains(lower))
                || link.peer.is_some_and(|peer| bridged.contains(&peer))
                || link.vrf_table.is_none() && masters.contains(&link.index)
                || has_ovs && is_ovs(link)
        };
        let fed = links.iter().filter(is_fed).filter(|link| follows(link));
        let all: BTreeSet<u32> = fed.map(|link| link.index).chain(found.iter().copied()).collect();
        if all.len() == found.len() {
            return found;
        }
        found = all;
    }
}

/// Returns the tunnels that are not ports. Linux does not report the interlink of an HSR device: it
/// could be an edge port.
pub(super) fn open_tunnels<'a>(
    forwarding: &'a Forwarding,
    links: &'a [Link],
) -> impl Iterator<Item = &'a Link> {
    let is_open = |link: &&Link| link.is_open_tunnel() || link.kind == "hsr";
    links.iter().filter(is_open).filter(|link| !forwarding.has_interface(link.index))
}

/// Adds the interfaces from which the given ones receive frames: those below, and ports of bridges,
/// bonds and rings.
pub(super) fn with_lower(mut found: BTreeSet<u32>, links: &[Link]) -> BTreeSet<u32> {
    loop {
        let before = found.len();
        for link in links {
            if found.contains(&link.index) {
                found.extend(link.lower.iter().chain(&link.slaves));
            } else if link.master.is_some_and(|master| found.contains(&master)) {
                found.insert(link.index);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}
