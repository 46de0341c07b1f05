//! Packet counts by tenant: the sum over its policies, and over the SIDs that decapsulate into its
//! table.

use std::collections::{BTreeMap, HashMap};

use api::v1;
use bpf::Count;
use dataplane::forwarding::{PolicyId, TABLE_TENANTS, TenantId};
use dataplane::{Counter, Dataplane};

/// Returns the counts by tenant. `name` gives the name of a tenant, `owners` the tenant of a
/// routing table.
pub(crate) fn counts(
    plane: &dyn Dataplane,
    name: &dyn Fn(TenantId) -> String,
    owners: &HashMap<u32, TenantId>,
) -> Vec<v1::DataplaneTenant> {
    let mut sums: BTreeMap<TenantId, [Count; 2]> = BTreeMap::new();
    let add = |sum: &mut Count, count: Option<Count>| {
        let count = count.unwrap_or_default();
        sum.packets += count.packets;
        sum.bytes += count.bytes;
    };
    let now = plane.current();
    for id in now.policies.keys() {
        let (PolicyId::Named(tenant, _) | PolicyId::Of(tenant, _)) = id;
        // Policies without a tenant belong to SIDs.
        if let Some(tenant) = tenant {
            add(&mut sums.entry(*tenant).or_default()[0], plane.count(Counter::Policy(id)));
        }
    }
    for (sid, endpoint) in &now.sids {
        let table = endpoint.behavior.inner_table();
        if let Some(tenant) = table.and_then(|look_up| owners.get(&look_up.table)) {
            add(&mut sums.entry(*tenant).or_default()[1], plane.count(Counter::Sid(sid)));
        }
    }
    let row =
        |(tenant, [encapsulated, decapsulated]): (TenantId, [Count; 2])| v1::DataplaneTenant {
            name: name(tenant),
            encapsulated_packets: encapsulated.packets,
            encapsulated_bytes: encapsulated.bytes,
            decapsulated_packets: decapsulated.packets,
            decapsulated_bytes: decapsulated.bytes,
        };
    // Tenants of the file first, then the kernel's tables.
    let (files, kernels): (Vec<_>, Vec<_>) =
        sums.into_iter().partition(|(tenant, _)| *tenant > TABLE_TENANTS);
    files.into_iter().chain(kernels).map(row).collect()
}
