//! Interfaces of a forwarding state that need care: by netfilter, or for their tags.

use std::collections::BTreeSet;

use dataplane::forwarding::Forwarding;
use netlink::{Link, has_local_senders};

/// Returns the interfaces to service functions on which tc may miss packets.
pub(super) fn guarded(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let all = forwarding.proxies().flat_map(|proxy| [proxy.to.index, proxy.back.index]);
    all.flatten().filter(|index| has_local_senders(links, *index)).collect()
}

/// Returns the ports with attachments of tagged frames, or with VLANs in the SR domain.
pub(super) fn tagged(forwarding: &Forwarding) -> BTreeSet<u32> {
    let in_domain = forwarding.domain_vlans.values().map(|vlan| vlan.frames.port);
    let ports = forwarding.attachments.keys().map(|key| key.port).chain(in_domain);
    ports.filter(|index| forwarding.ports.contains_key(index)).collect()
}
