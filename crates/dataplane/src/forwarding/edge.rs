//! The edge of the SR domain (RFC 8754 section 5.1, RFC 8986 section 9), across which packets
//! cannot reach the SIDs of this node.
//!
//! The program drops such packets on its ports and counts them. Packets that it does not inspect,
//! such as tagged frames, are passed to the kernel, where rules drop them, on the ports and on the
//! interfaces stacked on them. If the kernel forwards without XDP, the rules drop all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::{File, Table};
use netlink::{InterfaceRule, Link, MAIN_TABLE, Route, SLOW_PATH};

use super::rule_priority::PRIORITY;
use super::stacked::{open_tunnels, with_stacked};
use super::{Attachment, Behavior, Forwarding, Kernel, Owner, Port, Tags, Upper, VlanInterface};
use crate::Error;

/// Priority of the rules for packets to SIDs from edge ports and tenants, before tenants' tables.
pub(super) const FROM_EDGES: u32 = PRIORITY - 1;
/// Priority of the rules for packets from edge ports and tenants with a source inside the domain,
/// which other nodes would trust.
pub(super) const SPOOFED: u32 = PRIORITY - 2;
/// Priority of the rules that exempt the outer packets of tenants, which the kernel looks up as if
/// received on the tenant's interface, and packets from a tenant's own sources inside the domain.
const OUTER: u32 = PRIORITY - 3;
/// Priority of the rules that accept packets to SIDs from the domain, and locally generated ones.
const FROM_DOMAIN: u32 = PRIORITY + 3;
/// Priority of the rules that drop all other packets to SIDs.
const FROM_ELSEWHERE: u32 = PRIORITY + 4;

/// The kernel's table of its own addresses (RT_TABLE_LOCAL).
const LOCAL_TABLE: u32 = 255;

/// Maximum number of prefixes outside of the locators, each of which takes a rule on each closed
/// interface. The kernel compares packets with one rule after the other.
const MAX_OUTSIDE: usize = 1024;

/// Returns the prefixes of this node's SIDs: its locators, and the kernel's SIDs outside of them,
/// imported or not. The file's own SIDs are in its locators.
pub(in crate::forwarding) fn closed(forwarding: &Forwarding, kernel: &Kernel) -> Vec<Ipv6Net> {
    let outside = closed_outside(forwarding, kernel);
    forwarding.locators.iter().copied().chain(outside).collect()
}

/// Returns the part of it outside of the locators. Only packets of a VRF's own interfaces, to which
/// rules do not apply, are looked up in the VRF's table.
fn closed_outside(forwarding: &Forwarding, kernel: &Kernel) -> BTreeSet<Ipv6Net> {
    let vrfs: BTreeSet<u32> = kernel.links.iter().filter_map(|link| link.vrf_table).collect();
    outside(forwarding, kernel, |table| !vrfs.contains(&table))
}

/// Returns the SIDs of these tables outside of the locators, or, if there are too many, shorter
/// prefixes that cover them.
fn outside(
    forwarding: &Forwarding,
    kernel: &Kernel,
    is_wanted: impl Fn(u32) -> bool,
) -> BTreeSet<Ipv6Net> {
    let within = |sid: &Ipv6Net| forwarding.locators.iter().any(|net| net.contains(sid));
    let sids = kernel.sids.iter().filter(|(table, sid)| is_wanted(*table) && !within(sid));
    let mut found: BTreeSet<Ipv6Net> = sids.map(|(_, sid)| *sid).collect();
    let mut longest = 128;
    while found.len() > MAX_OUTSIDE {
        longest -= 16;
        let shorter = |net: Ipv6Net| {
            let length = net.prefix_len().min(longest);
            Ipv6Net::new_assert(net.network(), length).trunc()
        };
        found = found.into_iter().map(shorter).collect();
    }
    found
}

/// Returns a prefix that covers SIDs of the kernel, if there are too many.
fn shortened(forwarding: &Forwarding, kernel: &Kernel) -> Option<Ipv6Net> {
    if kernel.sids.len() <= MAX_OUTSIDE {
        return None;
    }
    let known: BTreeSet<&Ipv6Net> = kernel.sids.iter().map(|(_, sid)| sid).collect();
    closed_outside(forwarding, kernel).into_iter().find(|net| !known.contains(net))
}

/// Returns the rules that keep packets from reaching SIDs.
pub(in crate::forwarding) fn rules(
    forwarding: &Forwarding,
    kernel: &Kernel,
) -> BTreeSet<InterfaceRule> {
    let rule = |priority| InterfaceRule {
        priority,
        protocol: SLOW_PATH,
        ipv6: true,
        ..InterfaceRule::default()
    };
    let sources = || forwarding.sources_of(None).map(Some);
    let mut rules = BTreeSet::new();
    let (edges, tenants) = (edges(forwarding, &kernel.links), tenants(forwarding));
    let over_tenants = over_tenants(forwarding, &kernel.links);
    // Ports of a tenant's bridge may be inside the domain.
    let is_outside_port = |port: &Link| {
        let (index, is_on_another) = (port.index, port.lower.is_some() || !port.slaves.is_empty());
        let is_over = over_tenants.contains(&index) && is_on_another;
        edges.contains(&index) || tenants.contains(&index) || is_over
    };
    let ports_of =
        |bridge: u32| kernel.links.iter().filter(move |port| port.master == Some(bridge));
    let closed = closed(forwarding, kernel);
    // A rule that goes to a priority without rules has no effect.
    let unspoofed = if closed.is_empty() { PRIORITY } else { FROM_EDGES };
    for name in function_links(forwarding, &kernel.links) {
        let interface = Some(name.to_string());
        let on = |ipv6| InterfaceRule { interface: interface.clone(), ipv6, ..rule(FROM_EDGES) };
        rules.extend([false, true].map(on));
    }
    for link in &kernel.links {
        let on = |priority| InterfaceRule { interface: Some(link.name.clone()), ..rule(priority) };
        let (is_edge, is_over) = (edges.contains(&link.index), over_tenants.contains(&link.index));
        if is_edge || is_over || tenants.contains(&link.index) {
            let to = closed.iter().map(|net| Some(IpNet::V6(*net)));
            rules.extend(to.map(|to| InterfaceRule { to, ..on(FROM_EDGES) }));
        }
        // A tenant that stands for a table of the kernel is the operator's.
        let owner = owner(forwarding, link.index).filter(|owner| owner.is_of_file());
        let is_outside_alone = link.kind == "bridge" && ports_of(link.index).all(is_outside_port);
        let is_stacked = link.lower.is_some() || !link.slaves.is_empty() || is_outside_alone;
        if owner.map_or(is_edge || is_over && is_stacked, |owner| is_outside(owner, link)) {
            let (spoofed, mut own) = spoofed(forwarding, owner);
            if is_outside_alone {
                // The tenants of a bridge have one link.
                let owners =
                    ports_of(link.index).filter_map(|port| self::owner(forwarding, port.index));
                let all = owners.flat_map(|owner| own_sources(forwarding, Some(owner)));
                let is_spoofed =
                    |own: &IpNet| spoofed.iter().any(|net| net.contains(own) || own.contains(net));
                own.extend(all.filter(is_spoofed));
            }
            let spoofed = spoofed.into_iter().map(Some);
            rules.extend(spoofed.map(|from| InterfaceRule { from, ..on(SPOOFED) }));
            let (own, goto) = (own.into_iter().map(Some), Some(unspoofed));
            rules.extend(own.map(|from| InterfaceRule { from, goto, ..on(OUTER) }));
        }
        if let Some(source) = outer_source(forwarding, kernel, link, is_edge) {
            let (from, goto) = (Some(IpNet::from(source)), Some(unspoofed));
            rules.insert(InterfaceRule { from, goto, ..on(OUTER) });
        }
    }
    if sources().next().is_none() {
        return rules;
    }
    // Packets to these are looked up in the main table.
    let in_main = outside(forwarding, kernel, |table| table == MAIN_TABLE);
    for net in forwarding.locators.iter().copied().chain(in_main) {
        let to = Some(IpNet::V6(net));
        let on = || InterfaceRule { to, table: MAIN_TABLE, ..rule(FROM_DOMAIN) };
        rules.extend(sources().map(|from| InterfaceRule { from, ..on() }));
        rules.insert(InterfaceRule { interface: Some("lo".into()), ..on() });
        rules.insert(InterfaceRule { to, ..rule(FROM_ELSEWHERE) });
    }
    rules
}

/// Returns the names of interfaces that lead to functions: those in the file, and those that they have now,
/// and of those beside them. The kernel forwards none of their packets. The program at their tc ingress sees to it, but an interface
/// that has been created again is without it until the daemon has seen it.
fn function_links<'a>(forwarding: &'a Forwarding, links: &'a [Link]) -> BTreeSet<&'a str> {
    let all = || forwarding.proxies().flat_map(|proxy| [&proxy.to, &proxy.back]);
    let mut indices = forwarding.function_indices();
    indices.extend(beside_functions(forwarding, links));
    let now = links.iter().filter(|link| indices.contains(&link.index));
    all().map(|link| &*link.name).chain(now.map(|link| link.name.as_str())).collect()
}

/// Returns true for a rule of [`function_links`].
pub(super) fn drops_all(rule: &InterfaceRule) -> bool {
    rule.priority == FROM_EDGES && rule.interface.is_some() && rule.to.is_none()
}

/// Returns the ports at the edge, and the interfaces stacked on them. With an edge, a tenant or a function,
/// tunnels that are not ports belong to them: from there, anybody can send packets through them.
fn edges(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let ports = || forwarding.ports.iter().filter(|(_, port)| port.edge);
    // A port that was created again has another index until the state suits the file.
    let names: BTreeSet<&str> = ports().map(|(_, port)| port.name.as_str()).collect();
    let again = |link: &&Link| names.contains(link.name.as_str());
    let mut found: BTreeSet<u32> = ports().map(|(index, _)| *index).collect();
    found.extend(links.iter().filter(again).map(|link| link.index));
    let has_functions = forwarding.proxies().next().is_some();
    if !found.is_empty() || !tenants(forwarding).is_empty() || has_functions {
        found.extend(open_tunnels(forwarding, links).map(|link| link.index));
    }
    // An operator puts a VLAN of an edge port into the domain.
    with_stacked(found, links, |link| !forwarding.domain_vlans.contains_key(&link.index))
}

/// Returns the other interfaces that a function's frames reach if it tags them, or leaves out the tag:
/// those stacked on its interfaces, and those below them.
fn beside_functions(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let functions = forwarding.function_indices();
    // The file says whose frames arrive on these.
    let has_owner = |index: u32| {
        forwarding.ports.contains_key(&index)
            || forwarding.domain_vlans.contains_key(&index)
            || forwarding.uppers.get(&index).is_some_and(|upper| {
                let frames = Attachment { port: upper.port, tags: upper.tags };
                forwarding.attachments.get(&frames).is_some_and(Owner::is_of_file)
            })
    };
    let mut all = functions.clone();
    for link in links.iter().filter(|link| functions.contains(&link.index)) {
        let mut lower = link.lower;
        while let Some(index) = lower.filter(|index| !has_owner(*index)) {
            if !all.insert(index) {
                break;
            }
            lower = links.iter().find(|link| link.index == index).and_then(|link| link.lower);
        }
    }
    let all = with_stacked(all, links, |link| !has_owner(link.index));
    all.difference(&functions).copied().collect()
}

/// Returns the tunnels through which packets from outside of the domain may come, by index, with their
/// names. HSR and PRP devices, too, take off a header that a port's filter does not look behind.
pub(in crate::forwarding) fn tunnels(
    forwarding: &Forwarding,
    links: &[Link],
) -> BTreeMap<u32, String> {
    let (edges, over_tenants) = (edges(forwarding, links), over_tenants(forwarding, links));
    let is_outside = |link: &&Link| {
        (edges.contains(&link.index) || over_tenants.contains(&link.index))
            && !forwarding.ports.contains_key(&link.index)
    };
    let is_tunnel = |link: &&Link| link.is_open_tunnel() || link.kind == "hsr";
    let all = links.iter().filter(is_tunnel).filter(is_outside);
    all.map(|link| (link.index, link.name.clone())).collect()
}

/// Returns the interfaces that receive frames from outside of the domain: of tenants, and of hosts at
/// edge ports; and if there are some, from tunnels. The file may put single VLANs of an edge port to
/// other uses.
pub(super) fn reached_from_outside(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let edges = forwarding.ports.iter().filter(|(_, port)| port.edge);
    let edges = edges.map(|(index, _)| *index).collect();
    let mut all = with_stacked(edges, links, |link| link.vlan.is_none());
    all.extend(over_tenants(forwarding, links));
    all.extend(tenants(forwarding));
    if !all.is_empty() {
        let open = open_tunnels(forwarding, links).map(|link| link.index).collect();
        all.extend(with_stacked(open, links, |_| true));
    }
    all
}

/// Returns the interfaces of tenants.
fn tenants(forwarding: &Forwarding) -> BTreeSet<u32> {
    let interfaces = forwarding.ports.keys().chain(forwarding.uppers.keys()).copied();
    interfaces.filter(|index| owner(forwarding, *index).is_some_and(Owner::is_of_file)).collect()
}

/// Returns the interfaces that receive frames of tenants without being tenants' interfaces, for
/// example a macvlan, whose frames have a MAC address that the program does not inspect, or a VLAN,
/// since a tenant chooses its tags. A port and an attachment have frames of their own. A VLAN
/// interface that the program cannot send to may still receive an attachment's frames: its tags have
/// other protocols.
fn over_tenants(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let tenants = tenants(forwarding);
    let receives = |receiver: &VlanInterface| {
        forwarding.attachments.get(&receiver.frames).is_some_and(Owner::is_of_file)
    };
    let others = forwarding.vlans.iter().filter(|(_, receiver)| receives(receiver));
    let all = tenants.iter().chain(others.map(|(index, _)| index)).copied().collect();
    let shares = |link: &Link| {
        !owner(forwarding, link.index).is_some_and(Owner::is_of_file)
            && !forwarding.ports.contains_key(&link.index)
    };
    let all = with_stacked(all, links, shares);
    all.difference(&tenants).copied().collect()
}

/// Returns the owner of the packets that the kernel receives on an interface, which are untagged
/// there.
fn owner(forwarding: &Forwarding, interface: u32) -> Option<&Owner> {
    let key = match forwarding.uppers.get(&interface) {
        Some(Upper { port, tags }) => Attachment { port: *port, tags: *tags },
        None => Attachment { port: interface, tags: Tags::default() },
    };
    let port = || forwarding.ports.get(&interface).map(|port| &port.owner);
    forwarding.attachments.get(&key).or_else(port).filter(|owner| **owner != Owner::Nobody)
}

/// Returns true if packets of an owner must not have a source inside the domain, except for sources
/// of its own. In a VRF or a bridge, rules have no effect.
fn is_outside(owner: &Owner, link: &Link) -> bool {
    owner.is_of_file() && link.master.is_none()
}

/// Returns the prefixes of the domain from which an owner must not send, and those within them from
/// which it may, because they are its own.
pub(super) fn spoofed(forwarding: &Forwarding, owner: Option<&Owner>) -> (Vec<IpNet>, Vec<IpNet>) {
    let mut own = own_sources(forwarding, owner);
    let is_all_own = |net: &IpNet| own.iter().any(|own| own.contains(net));
    let spoofed: Vec<IpNet> = forwarding.sources_of(None).filter(|net| !is_all_own(net)).collect();
    own.retain(|own| spoofed.iter().any(|net| net.contains(own)));
    (spoofed, own)
}

fn own_sources(forwarding: &Forwarding, owner: Option<&Owner>) -> Vec<IpNet> {
    match owner {
        Some(Owner::Tenant(tenant)) => forwarding.sources_of(Some(*tenant)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the source of the outer packets that the kernel looks up as if received on an interface,
/// if the interface is outside of the domain and the source is inside.
fn outer_source(
    forwarding: &Forwarding,
    kernel: &Kernel,
    link: &Link,
    is_edge: bool,
) -> Option<IpAddr> {
    let owner = owner(forwarding, link.index)?;
    let Owner::Tenant(tenant) = owner else { return None };
    let steers = || forwarding.prefixes.keys().any(|(of, _)| of == tenant);
    let source = IpAddr::V6(kernel.source.unwrap_or(forwarding.source));
    let (is_outside, of) = match owner.is_of_file() {
        true => (is_outside(owner, link), Some(owner)),
        false => (is_edge, None),
    };
    let is_spoofed = || spoofed(forwarding, of).0.iter().any(|net| net.contains(&source));
    (is_outside && is_spoofed() && steers()).then_some(source)
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

/// Returns warnings about parts of the SR domain that are open in this state. `alone`: true if the
/// kernel forwards without XDP.
pub fn warnings(forwarding: &Forwarding, kernel: &Kernel, alone: bool) -> Vec<String> {
    let mut found = Vec::new();
    // On a trunk, untagged frames reach SIDs even if tenants own some of the tags.
    let is_edge = |port: &Port| port.edge || port.closed;
    let no_source = forwarding.sources_of(None).next().is_none();
    let has_sids = !forwarding.sids.is_empty() || !kernel.sids.is_empty();
    if has_sids && no_source && !forwarding.ports.values().any(is_edge) {
        found.push(
            "every port reaches every SID, from any source: write `sids: false` at the ports where the \
             SR domain ends, and the prefixes of its nodes under `sources:`"
                .into(),
        );
    }
    let local = kernel.sids.iter().filter(|(table, _)| *table == LOCAL_TABLE);
    found.extend(local.map(|(_, sid)| {
        format!(
            "{sid} is a SID in the kernel's table `local`, which comes before policy rules: every port \
             reaches it. Move its route to the table `main`"
        )
    }));
    let has_edge =
        !no_source || forwarding.ports.values().any(is_edge) || !tenants(forwarding).is_empty();
    if let Some(net) = shortened(forwarding, kernel).filter(|_| has_edge) {
        found.push(format!(
            "more than {MAX_OUTSIDE} of the kernel's SIDs are outside of `locators:`, so that edges are closed \
             to whole prefixes around them, such as {net}: list the prefixes of these SIDs under `locators:`"
        ));
    }
    // The file has no such SID.
    let in_domain = forwarding.domain_vlans.values().map(|vlan| &vlan.frames);
    let with_tags = forwarding.attachments.keys().chain(in_domain);
    let with_tags: BTreeSet<u32> = with_tags.map(|attachment| attachment.port).collect();
    for (sid, endpoint) in forwarding.sids.iter().filter(|_| !with_tags.is_empty()) {
        if let Behavior::EndDx2 { port } = endpoint.behavior
            && let Some(port) = forwarding.ports.get(&port).filter(|_| with_tags.contains(&port))
        {
            found.push(format!(
                "the kernel's {sid} (End.DX2) sends frames with any tag to `{0}`, also into VLANs of others: \
                 delete its route, and add End.DX2V with `vlans: {{VLAN: {0}}}` to `sids:`",
                port.name
            ));
        }
    }
    let (edges, tenants) = (edges(forwarding, &kernel.links), tenants(forwarding));
    let over_tenants = over_tenants(forwarding, &kernel.links);
    for link in &kernel.links {
        let is_edge = edges.contains(&link.index);
        if let Some(source) = outer_source(forwarding, kernel, link, is_edge).filter(|_| alone) {
            found.push(format!(
                "the kernel cannot tell packets of the tenant on `{0}` with this node's source from \
                 those that it encapsulates: drop them with nft, at hook prerouting: `iifname {0} ip6 \
                 saddr {source} drop`",
                link.name
            ));
        }
        let is_edge = forwarding.ports.get(&link.index).is_some_and(|port| port.edge);
        if let Some(net) = forwarding.sources_of(None).next().filter(|_| alone && is_edge) {
            found.push(format!(
                "the kernel delivers packets to its own addresses before policy rules, also those from \
                 the edge `{0}` with a source of the domain: drop them with nft, at hook prerouting: \
                 `iifname {0} ip6 saddr {net} drop`",
                link.name
            ));
        }
        let of = match link.index {
            index if edges.contains(&index) => Some("the edge"),
            index if tenants.contains(&index) || over_tenants.contains(&index) => {
                Some("the tenant's")
            }
            _ => None,
        };
        if let Some(of) = of.filter(|_| link.takes_srh) {
            found.push(format!(
                "the kernel takes SRHs to its own addresses from {of} `{0}`: `sysctl -w \
                 net.ipv6.conf.{0}.seg6_enabled=0`",
                link.name
            ));
        }
        let ours = |link: &Link| {
            forwarding.has_interface(link.index)
                || edges.contains(&link.index)
                || over_tenants.contains(&link.index)
        };
        let is_in = |other: &&Link| other.master == Some(link.index);
        if let Some(table) = falls_through(kernel, link)
            && kernel.links.iter().filter(is_in).any(ours)
        {
            found.push(format!(
                "packets that arrive in the VRF `{}` reach the SIDs: its table has no default route, so the \
                 lookup continues in the main table: `ip -6 route add unreachable default metric 4278198272 table \
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
