//! Routes and rules of the slow path for a forwarding state.

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv6Addr;

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::Name;
use netlink::{
    Encap, InterfaceRule, Link, LocalAction, MAIN_TABLE, NextHop, Route, RouteKind, SLOW_PATH,
};
use srv6::{EncapMode, Payload};

use super::key::{BEHIND, GUARD, Key, METRIC, TABLES, announced, is_guard, key};
use super::present::Present;
use super::refused::Refused;
use super::tenants::interfaces;
use crate::Error;
use crate::forwarding::absent::rules_of_absent;
use crate::forwarding::counterpart::counterpart;
use crate::forwarding::outer_destinations::{catches, outer_destinations};
use crate::forwarding::rule_priority::PRIORITY;
use crate::forwarding::stacked::with_stacked;
use crate::forwarding::{Forwarding, Kernel, Map, Names, Policy, PolicyId, TenantId, alone, edge};

/// Priority of the rule for the table [`GUARD`]. Tenants' rules come first; their tables contain no SIDs.
const GUARD_PRIORITY: u32 = PRIORITY + 1;
/// Maximum number of entries to install in the kernel in addition to XDP. With more, only the
/// locators are installed: a million routes take seconds, and half a kilobyte each.
const MAX_ROUTES: usize = 1 << 16;
/// Maximum number of absent interfaces that the file does not name, and whose rules stay. Each lookup of the
/// kernel goes through all rules, and a tenant's containers may get an interface of another name at each
/// start.
const MAX_ABSENT: usize = 256;

/// Routes and rules to install in the kernel for a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlowPath {
    pub(super) routes: Map<Key, Route>,
    pub(super) rules: BTreeSet<InterfaceRule>,
}

impl SlowPath {
    /// Returns the routes and rules to install in addition to XDP for `forwarding`, except for
    /// those that the kernel already has by itself. `interface` returns the egress interface of
    /// packets to a segment.
    pub fn new(
        forwarding: &Forwarding,
        kernel: &Kernel,
        interface: &mut dyn FnMut(Ipv6Addr) -> Option<u32>,
    ) -> Self {
        Self::made(forwarding, kernel, interface, are_few(forwarding))
    }

    /// Returns the rules that close interfaces to SIDs in this state of the kernel, even if it does
    /// not suit `forwarding` otherwise.
    pub fn closing(forwarding: &Forwarding, kernel: &Kernel) -> Self {
        Self { routes: Map::default(), rules: edge::rules(forwarding, kernel) }
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
        path.guard(forwarding, kernel, &interfaces);
        path.rules.extend(edge::rules(forwarding, kernel));
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
    fn guard(
        &mut self,
        forwarding: &Forwarding,
        kernel: &Kernel,
        tenants: &Map<TenantId, Vec<String>>,
    ) {
        let closed = edge::closed(forwarding, kernel);
        for (tenant, interfaces) in tenants {
            let table = TABLES + tenant;
            for net in &closed {
                self.close(table, IpNet::V6(*net), METRIC);
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
            let is_ours = |policy: &&Policy| !policy.in_kernel && policy.session.is_none();
            let Some(policy) = forwarding.policies.get(id).filter(is_ours) else {
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
            let mode = EncapMode::new(policy.form, Payload::Packet);
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
    pub(super) fn close(&mut self, table: u32, destination: IpNet, priority: u32) {
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

    /// Keeps the rules of absent interfaces, and the routes that close their tables. Rules refer to
    /// names, so an interface that returns is closed from its first packet. Also keeps those of
    /// interfaces whose lower one is in another namespace, since it may be a port that was moved
    /// there, and of ports that are left out, `missing`: they may be set up again, and have no program
    /// then. Of absent interfaces that the
    /// file does not name, the first [`MAX_ABSENT`] names keep their rules. While an interface to a function is absent, the interfaces beside it are not known: the
    /// rules that drop all packets stay.
    pub fn keep_absent(
        &mut self,
        present: &Present,
        forwarding: &Forwarding,
        links: &[Link],
        missing: &BTreeSet<Name>,
    ) {
        let is_missing = |link: &&Link| missing.contains(link.name.as_str());
        let left_out = links.iter().filter(is_missing).map(|link| link.index).collect();
        let left_out = with_stacked(left_out, links, |_| true);
        let is_known = |link: &&Link| !link.lower_is_elsewhere && !left_out.contains(&link.index);
        let known = links.iter().filter(is_known);
        let names: HashSet<&str> = known.map(|link| link.name.as_str()).collect();
        let mut to_functions = forwarding.proxies().flat_map(|proxy| [&proxy.to, &proxy.back]);
        let lacks_function = to_functions.any(|link| link.index.is_none());
        let is_absent = |rule: &&InterfaceRule| {
            rule.interface.as_deref().is_some_and(|name| !names.contains(name))
                || lacks_function && edge::drops_all(rule)
        };
        let named = forwarding.ports.values().map(|port| port.name.as_str());
        let functions = forwarding.proxies().flat_map(|proxy| [&proxy.to, &proxy.back]);
        let named = named.chain(functions.map(|link| &*link.name));
        let named: HashSet<&str> = named.chain(missing.iter().map(|name| &**name)).collect();
        let others = present.rules.iter().filter(is_absent);
        let others = others.filter_map(|rule| rule.interface.as_deref());
        let present_names: HashSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let is_other = |name: &&str| !named.contains(name) && !present_names.contains(name);
        let others: BTreeSet<&str> = others.filter(is_other).collect();
        let forgotten: HashSet<&str> = others.into_iter().skip(MAX_ABSENT).collect();
        let is_kept = |rule: &&InterfaceRule| {
            let is_forgotten = |name| forgotten.contains(name);
            edge::drops_all(rule) || !rule.interface.as_deref().is_some_and(is_forgotten)
        };
        let rules = present.rules.iter().filter(is_absent).filter(is_kept);
        let tables: HashSet<u32> = rules.clone().map(|rule| rule.table).collect();
        self.rules.extend(rules.cloned());
        let routes = present.routes.iter();
        for route in routes.filter(|route| is_guard(route) && tables.contains(&route.table)) {
            self.routes.entry(key(route)).or_insert_with(|| route.clone());
        }
    }

    /// Closes ports to SIDs that are outside of the SR domain, and do not exist or have no program.
    pub fn close_absent(
        &mut self,
        ports: &BTreeSet<Name>,
        forwarding: &Forwarding,
        kernel: &Kernel,
    ) {
        self.rules.extend(rules_of_absent(ports, forwarding, kernel));
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
    forwarding.sids.len() + forwarding.prefixes.len() <= MAX_ROUTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_absent_interfaces_are_limited() {
        let rule = |number: u32| InterfaceRule {
            interface: Some(format!("veth{number}")),
            protocol: SLOW_PATH,
            ipv6: true,
            ..InterfaceRule::default()
        };
        let present = Present { routes: Vec::new(), rules: (0..1000).map(rule).collect() };
        let missing = BTreeSet::from([Name::from("veth999")]);
        let links = [Link { name: "veth0".to_owned(), ..Link::default() }];
        let mut path = SlowPath::default();
        path.keep_absent(&present, &Forwarding::default(), &links, &missing);
        let has = |number: u32| path.rules.contains(&rule(number));
        assert_eq!(
            (path.rules.len(), has(999), has(0), has(1)),
            (MAX_ABSENT + 1, true, false, true)
        );
    }
}
