//! The slow path: packets that the program leaves to the kernel, such as those that are too big,
//! are handled correctly only if the kernel has the same SID and the same policy. This module
//! installs those of the file as routes.
//!
//! Each of them has an unreachable fallback route for the time while its interface is down, so that
//! no packet takes another path.
//!
//! - A SID becomes a seg6local route in the main table, unless there is already a route of another
//!   protocol for it.
//! - A tenant's prefixes become seg6 routes in a table of the tenant. A rule for each of the
//!   tenant's interfaces refers to the table, so that no other packet matches the routes. In the
//!   same table, the locators and the SIDs outside of them are unreachable: as in the program,
//!   tenants cannot reach SIDs.
//! - At the edge of the SR domain, rules keep packets from reaching SIDs (`edge.rs`).
//! - A service function's SID has an unreachable route in the main table, which a routing protocol
//!   may advertise, and another one in a table that precedes the main one. While the function is
//!   down, the first one is withdrawn, and the second one prevents packets from following a less
//!   specific route, past the rules.
//!
//! Entries without a counterpart are omitted: tags, whole frames, a table without its VRF, a prefix
//! that matches the outer packets, and routes that an older kernel rejects.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use netlink::{
    Batch, Encap, Errno, Handle, InterfaceRule, Link, LocalAction, MAIN_TABLE, NextHop, Route,
    RouteKind, SLOW_PATH, add_interface_rule, delete_interface_rule, delete_route, replace_route,
};
use srv6::{EncapMode, Payload};

use super::counterpart::counterpart;
use super::outer_destinations::{catches, outer_destinations};
use super::rule_priority::PRIORITY;
use super::{Attachment, Forwarding, Kernel, Map, Names, Owner, PolicyId, TABLE_TENANTS, TenantId};
use super::{alone, edge};
use crate::Error;

/// Tables of tenants are numbered above this base, which is not in use otherwise.
const TABLES: u32 = (SLOW_PATH as u32) << 16;

/// Table that prevents packets to service functions from leaving. No tenant has this number.
const GUARD: u32 = TABLES;
/// Priority of the rule for that table: after those of tenants, which cannot reach any SID.
const GUARD_PRIORITY: u32 = PRIORITY + 1;
/// Maximum number of entries to install in the kernel in addition to XDP. With more, only the
/// locators are installed: a million routes take seconds, and half a kilobyte each.
const MOST: usize = 1 << 16;
/// Metric of the routes, which distinguishes them from those of others.
const METRIC: u32 = 4096;

/// Metric of the fallback routes.
const BEHIND: u32 = METRIC + 1;

/// Identity of a route: table, destination, metric.
type Key = (u32, IpNet, u32);

/// Routes and rules to install in the kernel for a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlowPath {
    routes: Map<Key, Route>,
    rules: BTreeSet<InterfaceRule>,
}

/// Routes that the kernel rejected: an older one lacks some behaviors and flavors.
#[derive(Debug, Clone, Default)]
pub struct Refused(HashSet<Key>);

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

/// Routes and rules present in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Present {
    routes: Vec<Route>,
    rules: BTreeSet<InterfaceRule>,
}

impl Present {
    /// Lists the routes and rules.
    pub fn list(handle: &mut Handle) -> Result<Self, Error> {
        let rules = handle.interface_rules(SLOW_PATH)?.into_iter().collect();
        Ok(Self { routes: handle.routes(None, Some(SLOW_PATH))?, rules })
    }

    /// Returns the tenants that have routes or rules.
    pub fn tenants(&self) -> BTreeSet<TenantId> {
        let of_routes = self.routes.iter().map(|route| route.table);
        let tables = of_routes.chain(self.rules.iter().map(|rule| rule.table));
        tables.filter(|table| *table > TABLES).map(|table| table - TABLES).collect()
    }

    /// Returns true if the route of a service function is present, so that it may be advertised.
    pub fn announces(&self, sid: Ipv6Net) -> bool {
        self.routes.iter().any(|route| key(route) == announced(sid))
    }
}

impl Present {
    /// Restores this state in the kernel.
    pub fn restore(&self, handle: &mut Handle) -> Result<(), Error> {
        let now = Self::list(handle)?;
        let there: HashSet<&Route> = now.routes.iter().collect();
        let lacks = |route: &&Route| !there.contains(*route);
        add(handle, &self.routes.iter().filter(lacks).collect::<Vec<_>>())?;
        let before: HashSet<Key> = self.routes.iter().map(key).collect();
        let gone = now.routes.iter().filter(|route| !before.contains(&key(route)));
        remove(handle, gone.collect(), now.rules.difference(&self.rules))
    }
}

impl SlowPath {
    /// Returns the routes and rules to install in addition to XDP for `forwarding`, except for
    /// those that the kernel already has by itself. `interface` returns the egress interface of
    /// packets to a segment.
    pub fn of(
        forwarding: &Forwarding,
        kernel: &Kernel,
        interface: &mut dyn FnMut(Ipv6Addr) -> Option<u32>,
    ) -> Self {
        Self::made(forwarding, kernel, interface, are_few(forwarding))
    }

    /// Returns the rules that close interfaces to SIDs in this state of the kernel, even if it does
    /// not suit `forwarding` otherwise. `alone`: true if the kernel forwards without XDP.
    pub fn closing(forwarding: &Forwarding, kernel: &Kernel, alone: bool) -> Self {
        let rules = edge::rules(forwarding, kernel, alone || are_few(forwarding));
        Self { routes: Map::default(), rules }
    }

    /// Returns the routes and rules with which the kernel forwards all of `names.of` without XDP,
    /// or an error if it cannot.
    pub fn alone(
        names: Names<'_>,
        kernel: &Kernel,
        interface: &mut dyn FnMut(Ipv6Addr) -> Option<u32>,
    ) -> Result<Self, Error> {
        alone::check(names.of, kernel, names)?;
        Ok(Self::made(names.of, kernel, interface, true))
    }

    /// `few`: true if the entries are few enough to be installed.
    fn made(
        forwarding: &Forwarding,
        kernel: &Kernel,
        interface: &mut dyn FnMut(Ipv6Addr) -> Option<u32>,
        few: bool,
    ) -> Self {
        let mut path = Self::default();
        let interfaces = interfaces(forwarding, &kernel.links);
        path.guard(forwarding, &interfaces, few);
        path.rules.extend(edge::rules(forwarding, kernel, few));
        path.guard_functions(forwarding);
        let up = |link: &&Link| link.up && forwarding.ports.contains_key(&link.index);
        let device = kernel.links.iter().find(up).map(|link| link.index);
        if let Some(device) = device.filter(|_| few) {
            path.add_sids(forwarding, kernel, device);
            path.add_prefixes(forwarding, &interfaces, device, interface);
        }
        path
    }

    /// Keeps tenants from reaching SIDs.
    fn guard(&mut self, forwarding: &Forwarding, tenants: &Map<TenantId, Vec<String>>, few: bool) {
        let closed = edge::closed(forwarding, few);
        for (tenant, interfaces) in tenants {
            let table = TABLES + tenant;
            for net in &closed {
                self.close(table, IpNet::V6(**net), METRIC);
            }
            for ipv6 in [false, true] {
                for interface in interfaces {
                    let interface = Some(interface.clone());
                    let (protocol, priority) = (SLOW_PATH, PRIORITY);
                    self.rules.insert(InterfaceRule {
                        priority,
                        table,
                        protocol,
                        ipv6,
                        interface,
                        ..InterfaceRule::default()
                    });
                }
            }
        }
    }

    /// Adds two routes for each service function: the first may be advertised, the second remains
    /// while the first is withdrawn. Both are unreachable, so that no packet bypasses the rules.
    fn guard_functions(&mut self, forwarding: &Forwarding) {
        for (sid, _) in forwarding.sids.iter().filter(|(_, endpoint)| endpoint.is_function()) {
            self.close(MAIN_TABLE, IpNet::V6(*sid), METRIC);
            self.close(GUARD, IpNet::V6(*sid), METRIC);
            self.rules.insert(InterfaceRule {
                priority: GUARD_PRIORITY,
                table: GUARD,
                protocol: SLOW_PATH,
                ipv6: true,
                ..InterfaceRule::default()
            });
        }
    }

    /// Removes the routes of service functions that are down.
    pub fn withdraw(&mut self, down: &BTreeSet<Ipv6Net>) {
        for sid in down {
            self.routes.remove(&announced(*sid));
        }
    }

    /// Changes the kernel, which has this state, so that it has the routes of exactly those service
    /// functions that are up. `functions` contains the state of each.
    pub fn announce(
        &mut self,
        functions: &BTreeMap<Ipv6Net, bool>,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        let is_there = |sid: &Ipv6Net| self.routes.contains_key(&announced(*sid));
        let (mut batch, mut now) = (Batch::new(), self.clone());
        for (sid, up) in functions.iter().filter(|(sid, up)| is_there(sid) != **up) {
            if *up {
                now.close(MAIN_TABLE, IpNet::V6(*sid), METRIC);
                batch.push(
                    "announce a service function",
                    replace_route(&now.routes[&announced(*sid)]),
                );
            } else if let Some(route) = now.routes.remove(&announced(*sid)) {
                let request = delete_route(&route).tolerate(Errno::ESRCH);
                batch.push("withdraw a service function", request);
            }
        }
        handle.commit(batch)?;
        *self = now;
        Ok(())
    }

    fn add_sids(&mut self, forwarding: &Forwarding, kernel: &Kernel, device: u32) {
        let taken: HashSet<IpNet> =
            kernel.routes.iter().filter(|r| r.table == MAIN_TABLE).map(|r| r.destination).collect();
        for (sid, endpoint) in forwarding.sids.iter().filter(|(_, endpoint)| !endpoint.in_kernel) {
            let destination = IpNet::V6(*sid);
            let Some(action) = counterpart(endpoint, forwarding) else { continue };
            if taken.contains(&destination) || kernel.addresses.contains(&sid.addr().into()) {
                continue;
            }
            let encap = Encap::Seg6Local { action, flavors: endpoint.flavors, counters: false };
            self.add(MAIN_TABLE, destination, device, encap);
        }
    }

    fn add_prefixes(
        &mut self,
        forwarding: &Forwarding,
        interfaces: &Map<TenantId, Vec<String>>,
        device: u32,
        interface: &mut dyn FnMut(Ipv6Addr) -> Option<u32>,
    ) {
        let outer = outer_destinations(forwarding);
        let mut devices: Map<Ipv6Addr, u32> = Map::default();
        for ((tenant, prefix), id) in &forwarding.prefixes {
            if !interfaces.contains_key(tenant) {
                continue;
            }
            let Some(policy) = forwarding.policies.get(id).filter(|policy| !policy.in_kernel)
            else {
                continue;
            };
            // The kernel gets the first of several lists, since it handles only exceptional
            // packets.
            let Some(list) = policy.lists.first() else { continue };
            if catches(prefix, &outer) {
                continue;
            }
            let Some(first) = list.segments.0.first() else { continue };
            let device =
                *devices.entry(first.0).or_insert_with(|| interface(first.0).unwrap_or(device));
            let mode = EncapMode::of(policy.form, Payload::Packet);
            let table = TABLES + tenant;
            let encap = Encap::Seg6 { mode, segments: list.segments.clone() };
            self.add(table, *prefix, device, encap);
        }
    }

    fn add(&mut self, table: u32, destination: IpNet, interface: u32, encap: Encap) {
        let route = Route {
            table,
            protocol: SLOW_PATH,
            priority: METRIC,
            encap: Some(encap),
            ..Route::new(destination, vec![NextHop { via: None, interface }])
        };
        self.routes.insert(key(&route), route);
        self.close(table, destination, BEHIND);
    }

    /// Makes `destination` unreachable.
    fn close(&mut self, table: u32, destination: IpNet, priority: u32) {
        let (kind, protocol) = (RouteKind::Unreachable, SLOW_PATH);
        let route =
            Route { kind, table, protocol, priority, ..Route::new(destination, Vec::new()) };
        self.routes.insert(key(&route), route);
    }

    fn has(&self, table: u32, destination: IpNet) -> bool {
        self.routes.contains_key(&(table, destination, METRIC))
    }

    /// Returns the routes.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.values()
    }

    /// Marks the entries of `forwarding` that the kernel has too.
    pub fn mark(&self, forwarding: &mut Forwarding) {
        if self.routes.is_empty() {
            return;
        }
        for (sid, endpoint) in forwarding.sids.iter_mut().filter(|(_, one)| !one.is_function()) {
            endpoint.in_kernel |= self.has(MAIN_TABLE, IpNet::V6(*sid));
        }
        // A policy that several prefixes refer to is in the kernel if all of them are.
        let mut all: Map<&PolicyId, bool> = Map::default();
        for ((tenant, prefix), id) in &forwarding.prefixes {
            *all.entry(id).or_insert(true) &= self.has(TABLES + tenant, *prefix);
        }
        for (id, policy) in &mut forwarding.policies {
            policy.in_kernel |= all.get(id).copied().unwrap_or(false);
        }
    }

    /// Keeps the rules of interfaces that are absent, and the routes that close their tables, so
    /// that an interface that comes back is closed from its first packet. Rules refer to names. Also
    /// keeps those of interfaces whose lower one is in another namespace, since it may be a port that
    /// was moved there.
    pub fn keep_absent(&mut self, present: &Present, links: &[Link]) {
        let known = links.iter().filter(|link| !link.lower_is_elsewhere);
        let names: HashSet<&str> = known.map(|link| link.name.as_str()).collect();
        let is_absent = |rule: &&InterfaceRule| {
            rule.interface.as_deref().is_some_and(|name| !names.contains(name))
        };
        let rules = present.rules.iter().filter(is_absent);
        let tables: HashSet<u32> = rules.clone().map(|rule| rule.table).collect();
        self.rules.extend(rules.cloned());
        let routes = present.routes.iter();
        for route in routes.filter(|route| is_guard(route) && tables.contains(&route.table)) {
            self.routes.entry(key(route)).or_insert_with(|| route.clone());
        }
    }

    /// Removes the routes that the kernel rejected.
    pub fn leave_out(&mut self, refused: &Refused) {
        self.routes.retain(|key, _| !refused.0.contains(key));
    }

    /// Returns true if the kernel has exactly this state.
    pub fn is(&self, present: &Present) -> bool {
        let same = |route: &Route| self.routes.get(&key(route)) == Some(route);
        self.rules == present.rules
            && self.routes.len() == present.routes.len()
            && present.routes.iter().all(same)
    }

    /// Adds missing routes and rules to the kernel. Returns the routes that it rejected.
    pub fn extend(&self, handle: &mut Handle, present: &Present) -> Result<Refused, Error> {
        let there: Map<Key, &Route> =
            present.routes.iter().map(|route| (key(route), route)).collect();
        let missing: Vec<&Route> =
            self.routes.values().filter(|route| there.get(&key(route)) != Some(route)).collect();
        // Routes that keep packets from leaving are added before routes by which they might leave.
        let (guards, others): (Vec<&Route>, _) = missing.iter().partition(|r| is_guard(r));
        add(handle, &guards)?;
        let mut batch = Batch::new();
        for rule in self.rules.difference(&present.rules) {
            let label = format!("rule for packets from {}", from(rule));
            batch.push(label, add_interface_rule(rule).tolerate(Errno::EEXIST));
        }
        handle.commit(batch)?;
        add(handle, &others)?;
        if missing.is_empty() {
            return Ok(Refused::default());
        }
        let now = handle.routes(None, Some(SLOW_PATH))?;
        let now: Map<Key, &Route> = now.iter().map(|route| (key(route), route)).collect();
        // If the new route was rejected, the old one is still present.
        let is_old = |route: &&Route| now.get(&key(route)) == there.get(&key(route));
        Ok(missing.into_iter().filter(is_old).collect())
    }

    /// Removes surplus routes and rules from the kernel.
    pub fn shrink(&self, handle: &mut Handle, present: &Present) -> Result<(), Error> {
        let gone = present.routes.iter().filter(|route| !self.routes.contains_key(&key(route)));
        let rules = present.rules.difference(&self.rules);
        remove(handle, gone.collect(), rules)
    }

    /// Returns true if a route pushes an outer header.
    pub fn encapsulates(&self) -> bool {
        // Includes the list of a binding SID, since the kernel would use an address of the port as
        // source.
        let is_one = |encap: &Encap| match encap {
            Encap::Seg6 { .. } => true,
            Encap::Seg6Local { action, .. } => matches!(action, LocalAction::EndB6Encaps { .. }),
        };
        self.routes.values().any(|route| route.encap.as_ref().is_some_and(is_one))
    }
}

/// Returns true if the entries are few enough to be installed in addition to XDP.
fn are_few(forwarding: &Forwarding) -> bool {
    forwarding.sids.len() + forwarding.prefixes.len() <= MOST
}

/// Returns the key of the route that may be advertised.
fn announced(sid: Ipv6Net) -> Key {
    (MAIN_TABLE, IpNet::V6(sid), METRIC)
}

fn from(rule: &InterfaceRule) -> &str {
    rule.interface.as_deref().unwrap_or("anywhere")
}

fn key(route: &Route) -> Key {
    (route.table, route.destination, route.priority)
}

fn is_guard(route: &Route) -> bool {
    route.kind == RouteKind::Unreachable
}

/// Adds routes. Those that an older kernel rejects are missing afterwards.
fn add(handle: &mut Handle, routes: &[&Route]) -> Result<(), Error> {
    let mut batch = Batch::new();
    for route in routes {
        let label = format!("route {} for the slow path", route.destination);
        batch.push(label, replace_route(route).tolerate_any());
    }
    Ok(handle.commit(batch)?)
}

/// Deletes routes and rules. Routes that keep packets from leaving are deleted last.
fn remove<'a>(
    handle: &mut Handle,
    routes: Vec<&Route>,
    rules: impl Iterator<Item = &'a InterfaceRule>,
) -> Result<(), Error> {
    let (guards, others): (Vec<&Route>, Vec<&Route>) =
        routes.into_iter().partition(|route| is_guard(route));
    let mut batch = Batch::new();
    let label = |route: &Route| format!("delete the route {} of the slow path", route.destination);
    for route in others {
        batch.push(label(route), delete_route(route).tolerate(Errno::ESRCH));
    }
    for rule in rules {
        let label = format!("delete the rule for packets from {}", from(rule));
        batch.push(label, delete_interface_rule(rule).tolerate(Errno::ENOENT));
    }
    for route in guards {
        batch.push(label(route), delete_route(route).tolerate(Errno::ESRCH));
    }
    Ok(handle.commit(batch)?)
}

/// Returns the names of the interfaces on which tenants' packets arrive. A tenant is omitted if one
/// of them is in a VRF or a bridge, where rules have no effect: its packets would leave
/// unencapsulated. The kernel drops tagged frames without a VLAN interface.
fn interfaces(forwarding: &Forwarding, links: &[Link]) -> Map<TenantId, Vec<String>> {
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
