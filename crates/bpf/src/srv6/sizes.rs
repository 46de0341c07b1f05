//! Capacities of the tables.

use crate::index::buckets_for;
use crate::skeleton::{OpenSrv6Maps, types};

/// Maximum number of SIDs of service functions. Each needs an additional counter.
pub const FUNCTIONS: u32 = 1024;

/// Capacities of the tables. Lists, policies and counters are preallocated; SIDs and prefixes take
/// memory per entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of SIDs.
    pub sids: u32,
    /// Number of prefixes of each address family.
    pub prefixes: u32,
    /// Number of policies.
    pub policies: u32,
    /// Number of segment lists.
    pub lists: u32,
    /// Number of policies with more than one list.
    pub spreads: u32,
    /// Number of tenants.
    pub tenants: u32,
    /// Number of attachments of tagged frames.
    pub attachments: u32,
    /// Number of slots for packets in service functions, on each CPU. A power of two.
    pub slots: u32,
    /// Number of proxies of service functions; 0 for none.
    pub proxies: u32,
    /// Number of interfaces on which packets of End.AD return.
    pub rings: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        let some = 4096;
        Self {
            sids: some,
            prefixes: some,
            policies: some,
            lists: some,
            spreads: 256,
            tenants: 256,
            attachments: some,
            slots: 1,
            proxies: 0,
            rings: 0,
        }
    }
}

impl Sizes {
    /// Returns true if tables of size `other` have at least these capacities.
    pub fn fit_into(&self, other: Self) -> bool {
        self.or(other) == other
    }

    /// Returns the maximum of each capacity.
    pub fn or(&self, other: Self) -> Self {
        Self {
            sids: self.sids.max(other.sids),
            prefixes: self.prefixes.max(other.prefixes),
            policies: self.policies.max(other.policies),
            lists: self.lists.max(other.lists),
            spreads: self.spreads.max(other.spreads),
            tenants: self.tenants.max(other.tenants),
            attachments: self.attachments.max(other.attachments),
            slots: self.slots.max(other.slots),
            proxies: self.proxies.max(other.proxies),
            rings: self.rings.max(other.rings),
        }
    }

    /// Number of sets in the reply table.
    pub(super) fn passages(&self) -> u32 {
        if self.slots > 1 { types::limit::LIMIT_PASSAGES.0 } else { 1 }
    }

    /// Number of counters of each CPU: those of the reasons, and two for each SID, policy and service
    /// function, since new entries are added before old ones are removed.
    pub fn counters(&self) -> u32 {
        types::limit::LIMIT_REASONS.0 + 2 * (self.sids + self.policies + FUNCTIONS)
    }
}

/// Sets the sizes of the maps before they are created.
pub(super) fn set_sizes(
    maps: &mut OpenSrv6Maps<'_>,
    sizes: Sizes,
    cpus: u32,
) -> libbpf_rs::Result<()> {
    // Record 0 stands for none. New records are added before those that they replace are removed.
    let twice = |entries: u32| 2 * entries + 1;
    for (map, entries) in [
        (&mut maps.sids, twice(sizes.sids)),
        (&mut maps.sid_index, buckets_for(2 * sizes.sids)),
        (&mut maps.prefixes4, twice(sizes.prefixes)),
        (&mut maps.prefix4_index, buckets_for(2 * sizes.prefixes)),
        (&mut maps.prefixes6, twice(sizes.prefixes)),
        (&mut maps.prefix6_index, buckets_for(2 * sizes.prefixes)),
        (&mut maps.policies, twice(sizes.policies)),
        (&mut maps.lists, twice(sizes.lists)),
        (&mut maps.spreads, twice(sizes.spreads)),
        (&mut maps.tenants, sizes.tenants + 1),
        (&mut maps.attachments, sizes.attachments),
        (&mut maps.counts, sizes.counters() * cpus),
        (&mut maps.slots, cpus.saturating_mul(sizes.slots)),
        (&mut maps.passages, sizes.passages()),
        (&mut maps.function_drops, if sizes.slots > 1 { 2 * FUNCTIONS } else { 1 }),
        (&mut maps.proxies, twice(sizes.proxies)),
        (&mut maps.proxy_slots, (2 * sizes.rings * types::limit::LIMIT_PROXIED.0).max(1)),
        (&mut maps.proxy_heads, (2 * sizes.rings).max(1)),
        (&mut maps.adjacencies, cpus << types::limit::LIMIT_ADJACENCY_BITS.0),
        (&mut maps.found_sids, cpus << types::limit::LIMIT_FOUND_BITS.0),
        (&mut maps.found_policies, cpus << types::limit::LIMIT_FOUND_BITS.0),
    ] {
        map.set_max_entries(entries)?;
    }
    Ok(())
}
