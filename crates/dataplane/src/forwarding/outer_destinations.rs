//! Destinations of packets that already have an outer header, which no headend may steer again.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};

use super::{Forwarding, Policy};

/// Returns true if a prefix would also match packets that already have an outer header.
pub(in crate::forwarding) fn catches(prefix: &IpNet, outer: &BTreeSet<Ipv6Addr>) -> bool {
    let IpNet::V6(net) = prefix else { return false };
    outer.range(net.network()..=net.broadcast()).next().is_some()
}

/// Returns the destinations of encapsulated packets: SIDs, and the segments of every list.
pub(in crate::forwarding) fn outer_destinations(forwarding: &Forwarding) -> BTreeSet<Ipv6Addr> {
    let lists = forwarding.policies.values().flat_map(|policy: &Policy| &policy.lists);
    let segments = lists.flat_map(|list| list.segments.0.iter().map(|sid| sid.0));
    let all = segments.chain(forwarding.sids.keys().map(Ipv6Net::network));
    // A BTreeSet first collects a list of all of them: instances of a policy have the same segments,
    // together up to a gigabyte.
    all.collect::<HashSet<_>>().into_iter().collect()
}
