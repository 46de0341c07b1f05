//! Waits until routing has converged: every router has the routes that the topology requires.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use model::topology::{Routing, Topology};
use netlink::{Handle, MAIN_TABLE, Namespace};
use pathfinder::{Routes, routing};

use crate::error::StartError;
use crate::node::frr::Router;
use crate::node::index::interface_index;
use crate::pause::pause;
use crate::{Cancel, Error};

/// Polling interval for the routes.
const INTERVAL: Duration = Duration::from_millis(50);
/// If all routes exist, though not over the links that the topology requires, accept them after
/// they have been stable for this time: a node's own configuration may set other costs, and BGP's
/// path selection within an autonomous system differs.
const STABLE: Duration = Duration::from_secs(3);
/// Time for which RIP may delay a better route after a change (RFC 2453 section 3.10.1).
const RIP_TRIGGERED: Duration = Duration::from_secs(5);

/// Routes that a router's kernel must have: prefixes, with the interfaces' indexes.
type Table = BTreeMap<IpNet, BTreeSet<u32>>;

/// Time for which routes over unexpected links must be stable. With RIP a better route may arrive
/// with the next periodic update, if its triggered update was lost.
fn stable(topology: &Topology) -> Duration {
    let runs_rip = |ipv6| topology.nodes.iter().any(|node| routing(node, ipv6) == Routing::Rip);
    if runs_rip(false) || runs_rip(true) {
        return STABLE.max(topology.timers.rip.update + RIP_TRIGGERED);
    }
    STABLE
}

/// Waits until every router that runs a routing protocol has its routes, for at most `limit`.
pub(crate) fn wait(
    topology: &Topology,
    routers: &mut [Router],
    namespaces: &BTreeMap<usize, Namespace>,
    limit: Duration,
    cancel: &Cancel,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<(), Error> {
    let expected = expected(topology);
    let total: usize = expected.values().map(Table::len).sum();
    let mut handles = BTreeMap::new();
    for &at in expected.keys() {
        handles.insert(at, Handle::within(&namespaces[&at])?);
    }
    let (started, stable) = (Instant::now(), stable(topology));
    let mut seen: BTreeMap<usize, Table> = BTreeMap::new();
    let mut changed = started;
    loop {
        cancel.check()?;
        let mut now = BTreeMap::new();
        for (&at, handle) in &mut handles {
            now.insert(at, kernel_table(handle)?);
        }
        if now != seen {
            (seen, changed) = (now, Instant::now());
        }
        let missing = |exactly: bool| -> Vec<(usize, IpNet)> {
            let lacks = |at: usize, prefix: &IpNet, interfaces: &BTreeSet<u32>| {
                let found = seen[&at].get(prefix);
                found.is_none() || (exactly && found != Some(interfaces))
            };
            expected
                .iter()
                .flat_map(|(&at, table)| table.iter().map(move |(p, i)| (at, p, i)))
                .filter(|(at, prefix, interfaces)| lacks(*at, prefix, interfaces))
                .map(|(at, prefix, _)| (at, *prefix))
                .collect()
        };
        let inexact = missing(true);
        progress(total - inexact.len(), total);
        if inexact.is_empty() || (changed.elapsed() > stable && missing(false).is_empty()) {
            return Ok(());
        }
        routers.iter_mut().try_for_each(Router::check)?;
        if started.elapsed() > limit {
            let line = |(at, prefix): &(usize, IpNet)| {
                format!("{} has no route to {prefix}", topology.nodes[*at].name)
            };
            let missing = missing(false).iter().take(10).map(line).collect();
            return Err(Error::Start(StartError::NotConverged {
                seconds: limit.as_secs(),
                missing,
            }));
        }
        pause(INTERVAL);
    }
}

/// The protocols that have to converge.
const PROTOCOLS: [Routing; 4] = [Routing::Ospf, Routing::Isis, Routing::Rip, Routing::Bgp];

/// The routes that routers with routing protocols must have, by node.
fn expected(topology: &Topology) -> BTreeMap<usize, Table> {
    let mut expected: BTreeMap<usize, Table> = BTreeMap::new();
    for (ipv6, protocol) in [false, true].iter().flat_map(|&ipv6| PROTOCOLS.map(|p| (ipv6, p))) {
        let nodes = topology.nodes.iter().enumerate();
        let speakers: Vec<usize> =
            nodes.filter(|(_, n)| routing(n, ipv6) == protocol).map(|(at, _)| at).collect();
        if speakers.is_empty() {
            continue;
        }
        let routes = Routes::of_protocol(topology, ipv6, protocol);
        for at in speakers {
            let table = expected.entry(at).or_default();
            for (prefix, interfaces) in routes.from_node(at) {
                table.insert(prefix, interfaces.into_iter().map(interface_index).collect());
            }
        }
    }
    expected
}

fn kernel_table(handle: &mut Handle) -> Result<Table, Error> {
    let mut table = Table::new();
    for route in handle.routes(Some(MAIN_TABLE), None)? {
        let interfaces = route.next_hops.iter().map(|hop| hop.interface);
        table.entry(route.destination).or_default().extend(interfaces);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rip_is_given_an_update_to_find_a_better_way() {
        let seconds = |text: &str| {
            let head = "name: a\nnodes: {r1: {router: frr}, r2: {router: frr}}\nlinks: [r1-r2]\n";
            let topology = topology_file::parse("a.yaml", &format!("{head}{text}")).unwrap();
            stable(&topology).as_secs()
        };
        assert_eq!(seconds("routing: [ospf, ospf6]"), 3);
        assert_eq!(seconds("routing: [rip, static]"), 10);
        assert_eq!(seconds("routing: [ospf, ripng]\nrip: {update: 30s}"), 35);
    }
}
