//! Space for imported routes within the limits of a file.

use std::collections::HashSet;

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::Limits;
use srv6::{Form, SegmentList};

use super::{Endpoint, Forwarding, Map, Policy, PolicyId, TenantId};

/// Entries that are added together, or not at all.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) sids: Map<Ipv6Net, Endpoint>,
    pub(super) policies: Map<PolicyId, Policy>,
    pub(super) prefixes: Map<(TenantId, IpNet), PolicyId>,
}

/// The limits, and the entries that count towards them.
pub(super) struct Room<'a> {
    limits: &'a Limits,
    /// Policies with the same list share it.
    lists: HashSet<(SegmentList, Form)>,
    /// IPv4 and IPv6 prefixes.
    prefixes: [usize; 2],
}

impl<'a> Room<'a> {
    /// Counts the entries of `forwarding`, which come from the file.
    pub(super) fn new(limits: &'a Limits, forwarding: &Forwarding) -> Self {
        let lists = lists(&forwarding.policies).collect();
        Self { limits, lists, prefixes: by_family(&forwarding.prefixes) }
    }

    /// Adds entries that `forwarding` does not have yet. Returns the limit that they exceed.
    pub(super) fn add(
        &mut self,
        forwarding: &mut Forwarding,
        new: Additions,
    ) -> Result<(), &'static str> {
        let new_lists: HashSet<_> =
            lists(&new.policies).filter(|list| !self.lists.contains(list)).collect();
        let [ipv4, ipv6] = by_family(&new.prefixes);
        let prefixes = [self.prefixes[0] + ipv4, self.prefixes[1] + ipv6];
        let limits = self.limits;
        for (count, limit, exceeded) in [
            (
                forwarding.sids.len() + new.sids.len(),
                limits.sids,
                "more SIDs than `limits: sids`: raise it",
            ),
            (
                prefixes[0].max(prefixes[1]),
                limits.prefixes,
                "more prefixes than `limits: prefixes`: raise it",
            ),
            (
                forwarding.policies.len() + new.policies.len(),
                limits.policies,
                "more policies than `limits: policies`: raise it",
            ),
            (
                self.lists.len() + new_lists.len(),
                limits.lists,
                "more segment lists than `limits: lists`: raise it",
            ),
        ] {
            if count > limit as usize {
                return Err(exceeded);
            }
        }
        self.lists.extend(new_lists);
        self.prefixes = prefixes;
        forwarding.sids.extend(new.sids);
        forwarding.policies.extend(new.policies);
        forwarding.prefixes.extend(new.prefixes);
        Ok(())
    }
}

/// Returns the segment lists of policies, with their forms of encapsulation.
fn lists(policies: &Map<PolicyId, Policy>) -> impl Iterator<Item = (SegmentList, Form)> {
    policies
        .values()
        .flat_map(|policy| policy.lists.iter().map(|list| (list.segments.clone(), policy.form)))
}

/// Returns the numbers of IPv4 and of IPv6 prefixes.
fn by_family(prefixes: &Map<(TenantId, IpNet), PolicyId>) -> [usize; 2] {
    let ipv4 = prefixes.keys().filter(|(_, net)| matches!(net, IpNet::V4(_))).count();
    [ipv4, prefixes.len() - ipv4]
}
