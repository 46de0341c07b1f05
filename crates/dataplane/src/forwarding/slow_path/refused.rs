//! Entries of the slow path that the kernel rejects.

use std::collections::HashSet;

use ipnet::IpNet;
use netlink::{MAIN_TABLE, Route};

use super::key::{Key, TABLES, key};
use crate::Error;
use crate::forwarding::{Forwarding, Names, alone};

/// Routes that the kernel rejected: an older one lacks some behaviors and flavors.
#[derive(Debug, Clone, Default)]
pub struct Refused(pub(super) HashSet<Key>);

impl Refused {
    /// Adds those of `others`.
    pub fn add(&mut self, others: &Self) {
        self.0.extend(&others.0);
    }

    /// Returns an error that lists the entries that only XDP supports, if there are any.
    pub fn check(&self, names: Names<'_>) -> Result<(), Error> {
        let of_main = |(table, net, _): &Key| match net {
            IpNet::V6(sid) if *table == MAIN_TABLE => Some(*sid),
            _ => None,
        };
        let of_tenant = |(table, net, _): &Key| Some((table.checked_sub(TABLES)?, *net));
        let keys = self.0.iter();
        alone::refused(keys.clone().filter_map(of_main), keys.filter_map(of_tenant), names)
    }

    /// Marks these entries in `forwarding` as absent from the kernel.
    pub fn unmark(&self, forwarding: &mut Forwarding) {
        for (table, destination, _) in &self.0 {
            if let (MAIN_TABLE, IpNet::V6(sid)) = (*table, destination)
                && let Some(endpoint) = forwarding.sids.get_mut(sid)
            {
                endpoint.in_kernel = false;
            }
            let of_tenant = (table.wrapping_sub(TABLES), *destination);
            if let Some(id) = forwarding.prefixes.get(&of_tenant)
                && let Some(policy) = forwarding.policies.get_mut(id)
            {
                policy.in_kernel = false;
            }
        }
    }
}

impl<'a> FromIterator<&'a Route> for Refused {
    fn from_iter<T: IntoIterator<Item = &'a Route>>(routes: T) -> Self {
        Self(routes.into_iter().map(key).collect())
    }
}
