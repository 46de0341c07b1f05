//! The edge of the SR domain (RFC 8754 section 5.1, RFC 8986 section 9), across which packets
//! cannot reach the SIDs of this node.
//!
//! The program drops such packets on its ports and counts them. Packets that it does not inspect,
//! such as tagged frames, are passed to the kernel, where rules drop them. If the kernel forwards
//! without XDP, the rules drop all of them.

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::{File, Table};
use netlink::{InterfaceRule, Link, MAIN_TABLE, Route, SLOW_PATH};

use super::rule_priority::PRIORITY;
use super::{Forwarding, Kernel, Owner, Port};
use crate::Error;

/// Priority of the rules for packets to SIDs from edge ports, before those of tenants.
const FROM_EDGES: u32 = PRIORITY - 1;
/// Priority of the rules for packets from edge ports with a source inside the domain, which other
/// nodes would trust.
const SPOOFED: u32 = PRIORITY + 2;
/// Priority of the rules that accept packets to SIDs from the domain, and locally generated ones.
const FROM_DOMAIN: u32 = PRIORITY + 3;
/// Priority of the rules that drop all other packets to SIDs.
const FROM_ELSEWHERE: u32 = PRIORITY + 4;

/// Maximum depth of stacked interfaces: the kernel allows eight levels.
const LEVELS: usize = 8;

/// Returns the prefixes of this node's SIDs: its locators, and the SIDs outside of them. `few`:
/// true if the SIDs are few enough to be in the kernel.
pub(super) fn closed(forwarding: &Forwarding, few: bool) -> Vec<&Ipv6Net> {
    let within = |sid: &Ipv6Net| forwarding.locators.iter().any(|net| net.contains(sid));
    let outside = forwarding.sids.keys().filter(|sid| few && !within(sid));
    forwarding.locators.iter().chain(outside).collect()
}

/// Returns the rules that keep packets from reaching SIDs.
pub(super) fn rules(forwarding: &Forwarding, links: &[Link], few: bool) -> BTreeSet<InterfaceRule> {
    let rule = |priority| InterfaceRule {
        priority,
        protocol: SLOW_PATH,
        ipv6: true,
        ..InterfaceRule::default()
    };
    let edges: Vec<&Link> = links.iter().filter(|link| edge(forwarding, links, link)).collect();
    let sources = || forwarding.sources_of(0).map(Some);
    let mut rules = BTreeSet::new();
    for edge in edges {
        let interface = || Some(edge.name.clone());
        for net in closed(forwarding, few) {
            let to = Some(IpNet::V6(*net));
            rules.insert(InterfaceRule { interface: interface(), to, ..rule(FROM_EDGES) });
        }
        // The outer packets of tenants are looked up as if received on this interface.
        if !is_tenants(forwarding, edge.index) {
            let spoofed = |from| InterfaceRule { interface: interface(), from, ..rule(SPOOFED) };
            rules.extend(sources().map(spoofed));
        }
    }
    if sources().next().is_none() {
        return rules;
    }
    for net in closed(forwarding, few) {
        let to = Some(IpNet::V6(*net));
        let on = || InterfaceRule { to, table: MAIN_TABLE, ..rule(FROM_DOMAIN) };
        rules.extend(sources().map(|from| InterfaceRule { from, ..on() }));
        rules.insert(InterfaceRule { interface: Some("lo".into()), ..on() });
        rules.insert(InterfaceRule { to, ..rule(FROM_ELSEWHERE) });
    }
    rules
}

/// Returns true if an interface is a port at the edge, or stacked on one.
fn edge(forwarding: &Forwarding, links: &[Link], link: &Link) -> bool {
    let below = |link: &Link| {
        let parent = link.vlan.and_then(|vlan| vlan.parent)?;
        links.iter().find(|link| link.index == parent)
    };
    let all = std::iter::successors(Some(link), |link| below(link)).take(LEVELS);
    let mut ports = all.filter_map(|link| forwarding.ports.get(&link.index));
    ports.any(|port| port.edge)
}

/// Returns true if frames of the interface belong to a tenant.
fn is_tenants(forwarding: &Forwarding, interface: u32) -> bool {
    let of = forwarding.ports.get(&interface).map(|port| &port.owner);
    let upper = forwarding.uppers.get(&interface);
    let tagged = forwarding.attachments.keys().any(|key| {
        key.port == interface || upper.is_some_and(|u| u.port == key.port && u.tags == key.tags)
    });
    tagged || of.is_some_and(|owner| *owner != Owner::Nobody)
}

/// Rejects tenants in a VRF without a default route: for unknown destinations, the lookup continues
/// in the main table, which has all SIDs.
pub fn check_tables(file: &File, kernel: &Kernel) -> Result<(), Error> {
    for (name, tenant) in file.tenants.iter().filter(|(_, tenant)| !tenant.falls_through) {
        let vrf = kernel.links.iter().find(|link| match &tenant.table {
            Some(Table::Number(number)) => link.vrf_table == Some(*number),
            Some(Table::Vrf(vrf)) => *link.name == **vrf,
            None => false,
        });
        if let Some(table) = vrf.and_then(|vrf| falls_through(kernel, vrf)) {
            let (line, tenant) = (tenant.line, name.clone());
            return Err(Error::FallsThrough { line, tenant, table });
        }
    }
    Ok(())
}

/// Returns the table of a VRF if lookups in it continue in the main table. SIDs are IPv6.
fn falls_through(kernel: &Kernel, vrf: &Link) -> Option<u32> {
    let table = vrf.vrf_table?;
    let everything = IpNet::V6(Ipv6Net::default());
    let ends = |route: &Route| route.table == table && route.destination == everything;
    (!kernel.routes.iter().any(ends)).then_some(table)
}

/// Returns warnings about parts of the SR domain that are open in this state.
pub fn warnings(forwarding: &Forwarding, kernel: &Kernel) -> Vec<String> {
    let mut found = Vec::new();
    let is_edge =
        |(index, port): (&u32, &Port)| port.edge || port.closed || is_tenants(forwarding, *index);
    let no_source = forwarding.sources_of(0).next().is_none();
    if !forwarding.sids.is_empty() && no_source && !forwarding.ports.iter().any(is_edge) {
        found.push(
            "every port reaches every SID, from any source: write `sids: false` at the ports where the \
             SR domain ends, and the prefixes of its nodes under `sources:`"
                .into(),
        );
    }
    for link in &kernel.links {
        let is_edge = forwarding.ports.get(&link.index).is_some_and(|port| port.edge);
        if is_edge && link.takes_srh {
            found.push(format!(
                "the kernel takes SRHs to its own addresses from the edge `{0}`: `sysctl -w \
                 net.ipv6.conf.{0}.seg6_enabled=0`",
                link.name
            ));
        }
        let ours = |link: &&Link| {
            forwarding.ports.contains_key(&link.index)
                || forwarding.uppers.contains_key(&link.index)
        };
        let is_in = |other: &Link| other.master == Some(link.index);
        if let Some(table) = falls_through(kernel, link)
            && kernel.links.iter().filter(ours).any(is_in)
        {
            found.push(format!(
                "what comes in by the VRF `{}` reaches the SIDs: its table has no default route, so that \
                 the main table is next: `ip -6 route add unreachable default metric 4278198272 table \
                 {table}`",
                link.name
            ));
        }
    }
    found
}

#[cfg(test)]
#[path = "edge_tests.rs"]
mod tests;
