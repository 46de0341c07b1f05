//! Route tests: a node has a route, or does not have it.

use std::time::{Duration, Instant};

use ipnet::IpNet;
use lab::{Cancel, Lab};
use model::topology::{SegmentKind, Topology};
use netlink::{Handle, MAIN_TABLE, NextHop};

use crate::{Error, Observation};

/// Polling interval for the routes.
const INTERVAL: Duration = Duration::from_millis(20);

/// The route to look for.
pub(crate) struct Wanted<'t> {
    pub(crate) on: &'t str,
    pub(crate) route: IpNet,
    pub(crate) present: bool,
    pub(crate) via: &'t Option<String>,
}

impl Wanted<'_> {
    pub(crate) fn expected(&self) -> String {
        match (self.present, self.via) {
            (false, _) => "no route".into(),
            (true, None) => "a route".into(),
            (true, Some(via)) => format!("a route via {via}"),
        }
    }
}

/// Polls the node's main table until it is as wanted.
pub(crate) fn run(
    lab: &Lab,
    wanted: &Wanted<'_>,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<Observation, Error> {
    let topology = lab.topology();
    let at = topology.node_index(wanted.on).expect("the test's node is one of the lab's");
    let mut handle = Handle::within(&lab.namespace(wanted.on)?)?;
    loop {
        let routes = handle.routes(Some(MAIN_TABLE), None)?;
        let found: Vec<_> =
            routes.into_iter().filter(|route| route.destination == wanted.route).collect();
        let hops: Vec<NextHop> =
            found.iter().flat_map(|route| route.next_hops.iter().cloned()).collect();
        let mut names: Vec<&str> =
            hops.iter().flat_map(|hop| leads_to(topology, at, hop)).collect();
        names.sort_unstable();
        names.dedup();
        let leads = wanted.via.as_ref().is_none_or(|via| names.contains(&via.as_str()));
        let holds = found.is_empty() != wanted.present && (!wanted.present || leads);
        let now = Instant::now();
        if holds || now > deadline {
            let measured = match names.as_slice() {
                _ if found.is_empty() => "no route".into(),
                [] => "a route".into(),
                names => format!("a route via {}", names.join(", ")),
            };
            return Ok(Observation { holds_since: holds.then_some(now), measured });
        }
        cancel.wait(INTERVAL)?;
    }
}

/// The neighbors that a next hop may lead to: one, or all of a LAN if the next hop has no address.
fn leads_to<'t>(topology: &'t Topology, at: usize, hop: &NextHop) -> Vec<&'t str> {
    let interfaces = topology.nodes[at].interfaces.iter().enumerate();
    let Some((_, interface)) =
        interfaces.into_iter().find(|(index, _)| lab::interface_index(*index) == hop.interface)
    else {
        return Vec::new();
    };
    let is_lan = topology.segments[interface.segment].kind == SegmentKind::Lan;
    let ends: Vec<_> = topology.peers(interface, at).collect();
    let owner = ends.iter().filter(|_| is_lan).find(|end| {
        let theirs = &topology.nodes[end.node].interfaces[end.interface];
        hop.via.is_some_and(|via| via == theirs.ipv4.addr() || via == theirs.ipv6.addr())
    });
    match owner {
        Some(owner) => vec![topology.nodes[owner.node].name.as_str()],
        None => ends.iter().map(|end| topology.nodes[end.node].name.as_str()).collect(),
    }
}
