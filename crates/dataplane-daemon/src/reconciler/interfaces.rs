//! Interfaces of a forwarding state that need care: by netfilter, or for their tags.

use std::collections::BTreeSet;

use dataplane::forwarding::Forwarding;
use model::dataplane::{Dataplane as Which, File};
use netlink::{Link, is_reached_locally};

use crate::guard::Guarded;

/// Kinds of interfaces that receive frames of the interface below them, with their marks.
const STACKED: [&str; 5] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];

/// Returns the interfaces on which tc may miss packets: those to service functions, and ports with what is
/// stacked on them; and the names of those that pass nothing without their program.
pub(super) fn guarded(
    forwarding: &Forwarding,
    (which, file): (Which, &File),
    links: &[Link],
) -> Guarded {
    let to_functions = || forwarding.function_interfaces().map(|(index, _)| index);
    let functions: BTreeSet<u32> =
        to_functions().filter(|index| is_reached_locally(links, *index)).collect();
    // The kernel's data plane has no program that marks packets.
    let mut ports = match which {
        Which::Xdp => forwarding.guarded_ports.clone(),
        Which::Kernel => BTreeSet::new(),
    };
    let stacked = |link: &&Link| STACKED.contains(&&*link.kind);
    loop {
        let is_above = |link: &&Link| link.lower.is_some_and(|lower| ports.contains(&lower));
        let above = links.iter().filter(stacked).filter(is_above).map(|link| link.index);
        let all: BTreeSet<u32> = above.chain(ports.iter().copied()).collect();
        if all.len() == ports.len() {
            let names = names(file, which, links);
            let attached = forwarding.ports.keys().copied().chain(to_functions());
            let attached = attached.filter(|_| !names.is_empty()).collect();
            // Packets of a function have a mark of their own.
            let ports = ports.difference(&functions).copied().collect();
            return Guarded { functions, ports, names, attached };
        }
        ports = all;
    }
}

/// Returns the names of closed ports and of interfaces to functions that may be created again, as a network
/// card is not. The kernel's data plane has rules instead, which are by name.
fn names(file: &File, which: Which, links: &[Link]) -> BTreeSet<String> {
    if which == Which::Kernel {
        return BTreeSet::new();
    }
    let ports = file.ports.keys().filter(|name| file.is_outside(name));
    let proxies = file.sids.iter().filter_map(|(_, endpoint)| endpoint.behavior.proxy());
    let functions = proxies.flat_map(|proxy| [&proxy.to, &proxy.back]);
    let cards = links.iter().filter(|link| link.kind.is_empty());
    let cards: BTreeSet<&str> = cards.map(|link| link.name.as_str()).collect();
    let all = ports.chain(functions).filter(|name| !cards.contains(&***name));
    all.map(|name| name.to_string()).collect()
}

/// Returns the ports with attachments of tagged frames, or with VLANs in the SR domain.
pub(super) fn tagged(forwarding: &Forwarding) -> BTreeSet<u32> {
    let in_domain = forwarding.domain_vlans.values().map(|vlan| vlan.frames.port);
    let ports = forwarding.attachments.keys().map(|key| key.port).chain(in_domain);
    ports.filter(|index| forwarding.ports.contains_key(index)).collect()
}
