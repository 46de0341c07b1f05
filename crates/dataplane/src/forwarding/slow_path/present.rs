//! The slow path's routes and rules that the kernel has, and changes of them.

use std::collections::{BTreeSet, HashSet};

use ipnet::Ipv6Net;
use netlink::{
    Batch, Errno, Handle, InterfaceRule, Route, SLOW_PATH, delete_interface_rule, delete_route,
    replace_route,
};

use super::key::{Key, TABLES, announced, is_guard, key};
use crate::Error;
use crate::forwarding::TenantId;

/// Routes and rules present in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Present {
    pub(super) routes: Vec<Route>,
    pub(super) rules: BTreeSet<InterfaceRule>,
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

pub(super) fn from(rule: &InterfaceRule) -> &str {
    rule.interface.as_deref().unwrap_or("anywhere")
}

/// Adds routes. Those that an older kernel rejects are missing afterwards.
pub(super) fn add(handle: &mut Handle, routes: &[&Route]) -> Result<(), Error> {
    let mut batch = Batch::new();
    for route in routes {
        batch.push(label(route), replace_route(route).tolerate_any());
    }
    Ok(handle.commit(batch)?)
}

/// Describes the addition of a route.
pub(super) fn label(route: &Route) -> String {
    format!("route {} for the slow path", route.destination)
}

/// Deletes routes and rules. Routes that keep packets from leaving are deleted last.
pub(super) fn remove<'a>(
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
