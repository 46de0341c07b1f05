//! Tables and metrics of the slow path's routes, and their identity.

use ipnet::{IpNet, Ipv6Net};
use netlink::{MAIN_TABLE, Route, RouteKind, SLOW_PATH};

/// Tables of tenants are numbered above this base, which is not in use otherwise.
pub(super) const TABLES: u32 = (SLOW_PATH as u32) << 16;
/// Table that prevents packets to service functions from leaving. No tenant has this number.
pub(super) const GUARD: u32 = TABLES;
/// Metric of the routes, which distinguishes them from those of others.
pub(super) const METRIC: u32 = 4096;
/// Metric of the fallback routes.
pub(super) const BEHIND: u32 = METRIC + 1;

/// Identity of a route: table, destination, metric.
pub(super) type Key = (u32, IpNet, u32);

/// Returns the key of the route that may be advertised.
pub(super) fn announced(sid: Ipv6Net) -> Key {
    (MAIN_TABLE, IpNet::V6(sid), METRIC)
}

pub(super) fn key(route: &Route) -> Key {
    (route.table, route.destination, route.priority)
}

pub(super) fn is_guard(route: &Route) -> bool {
    route.kind == RouteKind::Unreachable
}
