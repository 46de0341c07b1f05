//! Interfaces of tenants whose packets the slow path's rules match.

use std::collections::HashSet;

use netlink::Link;

use crate::forwarding::{Attachment, Forwarding, Map, Owner, TABLE_TENANTS, TenantId};

/// Returns the names of the interfaces on which tenants' packets arrive. A tenant is omitted if one
/// of them is in a VRF or a bridge, where rules have no effect: its packets would leave
/// unencapsulated. The kernel drops tagged frames without a VLAN interface.
pub(super) fn interfaces(forwarding: &Forwarding, links: &[Link]) -> Map<TenantId, Vec<String>> {
    let by_index: Map<u32, &Link> = links.iter().map(|link| (link.index, link)).collect();
    let by_tags: Map<Attachment, u32> = forwarding
        .uppers
        .iter()
        .map(|(index, upper)| (Attachment { port: upper.port, tags: upper.tags }, *index))
        .collect();
    let untagged = forwarding.ports.iter().map(|(index, port)| (&port.owner, Some(*index)));
    let tagged = forwarding.attachments.iter();
    let tagged = tagged.map(|(attachment, owner)| (owner, by_tags.get(attachment).copied()));
    let mut found: Map<TenantId, Vec<String>> = Map::default();
    let mut enslaved: HashSet<TenantId> = HashSet::new();
    for (owner, interface) in untagged.chain(tagged) {
        let Owner::Tenant(tenant) = owner else { continue };
        // A tenant that stands for a table of the kernel has its routes already.
        if *tenant <= TABLE_TENANTS {
            continue;
        }
        let Some(link) = interface.and_then(|index| by_index.get(&index)) else { continue };
        if link.master.is_some() {
            enslaved.insert(*tenant);
        }
        found.entry(*tenant).or_default().push(link.name.clone());
    }
    found.retain(|tenant, _| !enslaved.contains(tenant));
    found
}
