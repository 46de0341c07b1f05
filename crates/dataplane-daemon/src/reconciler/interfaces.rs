//! Interfaces of a forwarding state that need care: by netfilter, or for their tags.

use std::collections::BTreeSet;

use dataplane::forwarding::Forwarding;
use model::dataplane::Dataplane as Which;
use netlink::{Link, is_reached_locally};

use crate::guard::Guarded;

/// Kinds of interfaces that receive frames of the interface below them, with their marks.
const STACKED: [&str; 5] = ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];

/// Returns the interfaces on which tc may miss packets: those to service functions, and ports with what is
/// stacked on them.
pub(super) fn guarded(forwarding: &Forwarding, which: Which, links: &[Link]) -> Guarded {
    let all = forwarding.proxies().flat_map(|proxy| [proxy.to.index, proxy.back.index]);
    let functions: BTreeSet<u32> =
        all.flatten().filter(|index| is_reached_locally(links, *index)).collect();
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
            // Packets of a function have a mark of their own.
            let ports = ports.difference(&functions).copied().collect();
            return Guarded { functions, ports };
        }
        ports = all;
    }
}

/// Returns the ports with attachments of tagged frames, or with VLANs in the SR domain.
pub(super) fn tagged(forwarding: &Forwarding) -> BTreeSet<u32> {
    let in_domain = forwarding.domain_vlans.values().map(|vlan| vlan.frames.port);
    let ports = forwarding.attachments.keys().map(|key| key.port).chain(in_domain);
    ports.filter(|index| forwarding.ports.contains_key(index)).collect()
}
