//! The program's tables, changed according to a [`Forwarding`].
//!
//! New entries are added first and old ones are removed last: lists before the policies that refer
//! to them, policies before prefixes, prefixes before the ports that use them. After every step, a
//! packet takes either the old or the new path. A change that fails is undone by rewriting the
//! complete previous state.

mod counters;
mod lengths;
mod outer;
mod ports;
mod proxies;
mod sid_value;
mod sources;
mod spread;

use std::net::Ipv6Addr;

use bpf::srv6::FUNCTIONS;
use bpf::srv6::types::{self, limit};
use bpf::{Count, Drops, Srv6};
use ipnet::{IpNet, Ipv6Net};
use srv6::{Form, SegmentList, SessionArgs};

use self::counters::Counters;
use self::lengths::Lengths;
use self::ports::Ports;
use self::proxies::Proxies;
use self::sources::Sources;
use self::spread::spread;
use crate::forwarding::{Endpoint, Forwarding, Map, Policy, PolicyId, TenantId};
use crate::{Counted, Error};

pub use self::outer::outer;
pub(super) use self::ports::attachments;
pub(super) use self::proxies::{count as proxy_count, rings};

/// A list, with all parameters of its header.
type ListKey = (Ipv6Addr, SegmentList, Form, Option<SessionArgs>);

/// Index of the record of a list's header, and count of its users.
struct PlacedList {
    index: u32,
    users: usize,
}

/// Index of a policy's record, its counter and its lists.
struct PlacedPolicy {
    index: u32,
    counter: u32,
    lists: Vec<ListKey>,
    spread: u32,
}

/// Index of a SID's record, and its counter.
struct PlacedSid {
    index: u32,
    counter: u32,
    /// Counter of packets that return from a service function.
    returned: Option<u32>,
}

/// The tables of a loaded program.
pub struct Tables {
    srv6: Srv6,
    now: Forwarding,
    lists: Map<ListKey, PlacedList>,
    policies: Map<PolicyId, PlacedPolicy>,
    prefixes: Map<(TenantId, IpNet), u32>,
    sids: Map<Ipv6Net, PlacedSid>,
    /// Policies for replies to functions' packets, by the index of the return policy.
    ways_back: Map<u32, PolicyId>,
    counters: Counters,
    lengths: Lengths,
    ports: Ports,
    sources: Sources,
    proxies: Proxies,
}

impl Tables {
    /// Creates the empty tables of a program that was just loaded.
    pub fn new(srv6: Srv6) -> Self {
        let counters = Counters::new(limit::LIMIT_REASONS.0, srv6.sizes().counters());
        Self {
            srv6,
            now: Forwarding::default(),
            lists: Map::default(),
            policies: Map::default(),
            prefixes: Map::default(),
            sids: Map::default(),
            ways_back: Map::default(),
            counters,
            lengths: Lengths::default(),
            ports: Ports::default(),
            sources: Sources::default(),
            proxies: Proxies::default(),
        }
    }

    /// Returns the program.
    pub fn program(&self) -> &Srv6 {
        &self.srv6
    }

    /// Returns the installed state.
    pub fn now(&self) -> &Forwarding {
        &self.now
    }

    /// Returns the count of packets to a SID.
    pub fn count_of_sid(&self, sid: &Ipv6Net) -> Option<Count> {
        self.sids.get(sid).map(|placed| self.srv6.count_of_sid(placed.index))
    }

    /// Returns the count of packets that returned from a SID's service function.
    pub fn count_of_returned(&self, sid: &Ipv6Net) -> Option<Count> {
        self.sids.get(sid)?.returned.map(|counter| self.srv6.count(counter))
    }

    /// Returns the packets of a SID that the kernel dropped while they were in its service
    /// function.
    pub fn drops(&self, sid: &Ipv6Net) -> Option<Drops> {
        self.srv6.drops(self.sids.get(sid)?.returned?)
    }

    /// Returns the count of a policy's packets.
    pub fn count_of_policy(&self, policy: &PolicyId) -> Option<Count> {
        self.policies.get(policy).map(|placed| self.srv6.count(placed.counter))
    }

    /// Returns the entity that a counter belongs to.
    pub fn counted(&self, counter: u32) -> Option<Counted<'_>> {
        let sid = self.sids.iter().find(|(_, placed)| placed.counter == counter);
        let policy = || self.policies.iter().find(|(_, placed)| placed.counter == counter);
        let sid = sid.map(|(sid, _)| Counted::Sid(sid));
        sid.or_else(|| policy().map(|(id, _)| Counted::Policy(id)))
    }

    /// Changes the tables to `wanted` and returns the previous state. On an error, the tables are
    /// restored.
    pub fn change_to(&mut self, wanted: Forwarding) -> Result<Forwarding, Error> {
        self.check(&wanted)?;
        let before = std::mem::take(&mut self.now);
        if let Err(error) = self.change(&wanted, Some(&before)) {
            // The previous state fits, since it was installed before. The first error is reported.
            let _ = self.change(&before, None);
            self.now = before;
            return Err(error);
        }
        self.now = wanted;
        Ok(before)
    }

    /// Rejects invalid states before any change.
    fn check(&self, wanted: &Forwarding) -> Result<(), Error> {
        let sizes = self.srv6.sizes();
        let of = |ipv6: bool| {
            wanted.prefixes.keys().filter(|(_, net)| matches!(net, IpNet::V6(_)) == ipv6).count()
        };
        let tenants = wanted.prefixes.keys().map(|(tenant, _)| *tenant).max().unwrap_or(0);
        let functions = wanted.sids.values().filter(|endpoint| endpoint.is_function());
        for (what, count, room) in [
            ("SIDs", wanted.sids.len(), sizes.sids),
            ("IPv4 prefixes", of(false), sizes.prefixes),
            ("IPv6 prefixes", of(true), sizes.prefixes),
            ("policies", wanted.policies.len(), sizes.policies),
            ("tenants", tenants as usize, sizes.tenants),
            ("attachments", attachments(wanted), sizes.attachments),
            ("sources", 2 * wanted.sources.len(), self.srv6.sources.capacity()),
            ("service functions", functions.count(), FUNCTIONS),
        ] {
            if count > room as usize {
                return Err(Error::TooMany { what, count, room });
            }
        }
        ports::check(wanted)?;
        for policy in wanted.policies.values() {
            for list in &policy.lists {
                outer(wanted.source, &list.segments, policy.form, policy.session)?;
            }
        }
        Ok(())
    }

    /// Writes the entries of `wanted` that differ from `before`; all entries if the previous state
    /// is unknown.
    fn change(&mut self, wanted: &Forwarding, before: Option<&Forwarding>) -> Result<(), Error> {
        let source = wanted.source;
        // Ports refer to sources: new sources are added before, old ones are removed afterwards.
        self.sources.extend(&self.srv6, wanted)?;
        // Ports are closed before SIDs are added, and opened after SIDs have been removed.
        self.ports.close(&self.srv6, wanted)?;
        self.srv6.set_source(source);
        let same_source = before.is_some_and(|before| before.source == source);
        for (id, policy) in &wanted.policies {
            if !same_source || before.and_then(|b| b.policies.get(id)) != Some(policy) {
                self.place_policy(id, policy, source)?;
            }
        }
        for (key, policy) in &wanted.prefixes {
            if before.and_then(|before| before.prefixes.get(key)) != Some(policy) {
                self.place_prefix(*key, policy)?;
            }
        }
        self.proxies.begin(&self.srv6, wanted)?;
        for (sid, endpoint) in &wanted.sids {
            if before.and_then(|before| before.sids.get(sid)) != Some(endpoint) {
                self.place_sid(*sid, endpoint)?;
            }
        }
        // Proxy arguments depend on ports: rewrite them even if the SID is unchanged.
        for (sid, endpoint) in
            wanted.sids.iter().filter(|(_, endpoint)| endpoint.behavior.proxy().is_some())
        {
            let returned = self.sids.get(sid).and_then(|placed| placed.returned).unwrap_or(0);
            self.sid_value(*sid, endpoint, returned)?;
        }
        let policies = &self.policies;
        let index = |id: &PolicyId| policies.get(id).map(|placed| placed.index);
        self.ports.change(&self.srv6, wanted, &index)?;
        self.remove_ways_back(wanted)?;
        self.remove(wanted);
        self.proxies.end(&self.srv6, wanted)?;
        self.ports.open(&self.srv6, wanted)?;
        self.sources.shrink(&self.srv6, wanted)?;
        // Removed records are reused by the next change at the earliest.
        self.srv6.begin_version();
        Ok(())
    }

    /// Removes entries that are not wanted any more.
    fn remove(&mut self, wanted: &Forwarding) {
        let gone = self.sids.extract_if(|sid, _| !wanted.sids.contains_key(sid));
        for (sid, placed) in gone {
            self.srv6.sids.remove(placed.index);
            self.counters.free(placed.counter);
            placed.returned.into_iter().for_each(|counter| self.counters.free(counter));
            self.lengths.remove_sid(&self.srv6, sid.prefix_len());
        }
        let gone = self.prefixes.extract_if(|key, _| !wanted.prefixes.contains_key(key));
        for (key, index) in gone {
            match key.1 {
                IpNet::V4(_) => self.srv6.prefixes4.remove(index),
                IpNet::V6(_) => self.srv6.prefixes6.remove(index),
            }
            self.lengths.remove_prefix(&self.srv6, key.0, key.1);
        }
        let gone = self.policies.extract_if(|id, _| !wanted.policies.contains_key(id));
        for (_, placed) in gone.collect::<Vec<_>>() {
            self.srv6.policies.remove(placed.index);
            self.counters.free(placed.counter);
            self.release(&placed.lists, placed.spread);
        }
    }

    /// Removes return policies that are not wanted any more, before their records are reused.
    fn remove_ways_back(&mut self, wanted: &Forwarding) -> Result<(), Error> {
        for (way, _) in self.ways_back.extract_if(|_, id| !wanted.policies.contains_key(id)) {
            self.srv6.return_policies.remove(&way)?;
        }
        Ok(())
    }

    /// Releases the lists of a policy.
    fn release(&mut self, lists: &[ListKey], spread: u32) {
        for key in lists {
            if let Some(list) = self.lists.get_mut(key) {
                list.users -= 1;
                if list.users == 0 {
                    self.srv6.lists.remove(list.index);
                    self.lists.remove(key);
                }
            }
        }
        if spread != 0 {
            self.srv6.spreads.remove(spread);
        }
    }

    /// Returns the index of the record of a list's header, created if necessary, and adds a user.
    fn list(&mut self, key: &ListKey) -> Result<u32, Error> {
        if let Some(list) = self.lists.get_mut(key) {
            list.users += 1;
            return Ok(list.index);
        }
        let index = self.srv6.lists.add(outer(key.0, &key.1, key.2, key.3)?)?;
        self.lists.insert(key.clone(), PlacedList { index, users: 1 });
        Ok(index)
    }

    /// Adds a policy, or changes the lists of an existing one.
    fn place_policy(
        &mut self,
        id: &PolicyId,
        policy: &Policy,
        source: Ipv6Addr,
    ) -> Result<(), Error> {
        let key = |list: &SegmentList| (source, list.clone(), policy.form, policy.session);
        let keys: Vec<ListKey> = policy.lists.iter().map(|list| key(&list.segments)).collect();
        let mut indexes = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            match self.list(key) {
                Ok(index) => indexes.push(index),
                Err(error) => {
                    self.release(&keys[..at], 0);
                    return Err(error);
                }
            }
        }
        let weights: Vec<u32> = policy.lists.iter().map(|list| list.weight).collect();
        let made = match indexes.as_slice() {
            // Without a list, the packets are left to the kernel.
            [] | [_] => Ok(0),
            many => self.srv6.spreads.add(types::spread { list: spread(many, &weights) }),
        };
        let spread = match made {
            Ok(spread) => spread,
            Err(error) => {
                self.release(&keys, 0);
                return Err(error.into());
            }
        };
        let first = indexes.first().copied().unwrap_or(0);
        let mut value = types::policy {
            list: first,
            spread,
            counter: 0,
            in_kernel: u32::from(policy.in_kernel),
        };
        if let Some(placed) = self.policies.get_mut(id) {
            value.counter = placed.counter;
            self.srv6.change_policy(placed.index, value);
            let lists = std::mem::replace(&mut placed.lists, keys);
            let old = std::mem::replace(&mut placed.spread, spread);
            self.release(&lists, old);
        } else {
            let counter = self.counters.take(&self.srv6);
            value.counter = counter;
            let index = match self.srv6.policies.add(value) {
                Ok(index) => index,
                Err(error) => {
                    self.counters.free(counter);
                    self.release(&keys, spread);
                    return Err(error.into());
                }
            };
            let placed = PlacedPolicy { index, counter, lists: keys, spread };
            self.policies.insert(id.clone(), placed);
        }
        Ok(())
    }

    fn place_prefix(&mut self, key: (TenantId, IpNet), id: &PolicyId) -> Result<(), Error> {
        let policy = self.policy_index(id)?;
        let (tenant, net) = key;
        let old = self.prefixes.get(&key).copied();
        let index = match net {
            IpNet::V4(net) => {
                let value = types::prefix4 {
                    address: u32::from_ne_bytes(net.network().octets()),
                    tenant,
                    length: u32::from(net.prefix_len()),
                    policy,
                };
                match old {
                    Some(old) => self.srv6.prefixes4.replace(old, value)?,
                    None => self.srv6.prefixes4.add(value)?,
                }
            }
            IpNet::V6(net) => {
                let value = types::prefix6 {
                    address: bpf::words(net.network()),
                    tenant,
                    length: u32::from(net.prefix_len()),
                    policy,
                    pad: 0,
                };
                match old {
                    Some(old) => self.srv6.prefixes6.replace(old, value)?,
                    None => self.srv6.prefixes6.add(value)?,
                }
            }
        };
        self.prefixes.insert(key, index);
        if old.is_none() {
            self.lengths.add_prefix(&self.srv6, tenant, net);
        }
        Ok(())
    }

    fn place_sid(&mut self, sid: Ipv6Net, endpoint: &Endpoint) -> Result<(), Error> {
        let known = self.sids.get(&sid).map(|placed| (placed.index, placed.counter));
        let before = self.sids.get(&sid).and_then(|placed| placed.returned);
        let counter = known.map_or_else(|| self.counters.take(&self.srv6), |(_, counter)| counter);
        let returned = endpoint
            .is_function()
            .then(|| before.unwrap_or_else(|| self.counters.take(&self.srv6)));
        let version = match known {
            Some((index, _)) => self.srv6.sids.get(index).version,
            None => self.srv6.version(),
        };
        let index = self.sid_value(sid, endpoint, returned.unwrap_or(0)).and_then(|value| {
            let value = types::sid { counter, version, ..value };
            Ok(match known {
                Some((index, _)) => self.srv6.sids.replace(index, value)?,
                None => self.srv6.sids.add(value)?,
            })
        });
        match (index, known) {
            (Ok(index), _) => {
                self.sids.insert(sid, PlacedSid { index, counter, returned });
                // The SID is no longer a service function.
                before
                    .filter(|_| returned.is_none())
                    .into_iter()
                    .for_each(|before| self.counters.free(before));
            }
            (Err(error), None) => {
                self.counters.free(counter);
                returned.into_iter().for_each(|returned| self.counters.free(returned));
                return Err(error);
            }
            (Err(error), Some((index, _))) => {
                let returned = returned.or(before);
                self.sids.insert(sid, PlacedSid { index, counter, returned });
                return Err(error);
            }
        }
        if known.is_none() {
            self.lengths.add_sid(&self.srv6, sid.prefix_len());
        }
        Ok(())
    }

    /// Returns the index of an installed policy's record.
    pub(super) fn policy_index(&self, id: &PolicyId) -> Result<u32, Error> {
        let unknown = || Error::UnknownPolicy { policy: id.clone() };
        Ok(self.policies.get(id).ok_or_else(unknown)?.index)
    }
}
