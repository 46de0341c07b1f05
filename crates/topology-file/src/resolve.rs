//! Resolves the grammar's values to a network, and checks all rules.

use document::{Place, Report, Step, Tree, steps};
use model::is_lab_name;
use model::topology::{
    Adjacency, End, Interface, Node, NodeKind, RouterKind, SRV6_HEADROOM, Segment, Topology,
};
use srv6::function;

use super::addresses::{Pools, assign, member4, member6};
use super::applications::applications;
use super::attachment;
use super::backend::{backend, check_queues};
use super::events::events;
use super::file::File;
use super::functions::functions;
use super::hops::check_hops;
use super::links::{Plan, links};
use super::nodes::nodes;
use super::programs;
use super::switches;
use super::tests_section::tests;
use super::timers::timers;

/// Default inner MTU of a lab.
const DEFAULT_MTU: u16 = 1500;
/// Maximum number of adjacencies of all nodes: those of a LAN are as many as the square of its members.
const MAX_TOTAL_ADJACENCIES: usize = 1 << 22;
/// Maximum number of adjacencies with a SID on one node.
const MAX_ADJACENCIES: usize = (function::END_AN_NF_FIRST - function::END_X_FIRST) as usize;

/// Resolves the network of `file`, or returns the report with all errors.
pub(crate) fn resolve<'a>(
    tree: &'a Tree,
    file: &File,
    report: Report<'a>,
) -> Result<Topology, Report<'a>> {
    let mut place = Place { tree, report };
    if !is_lab_name(&file.name) {
        let message = format!("`{}` cannot name a lab", file.name);
        let help = "use up to 31 of a-z, 0-9 and -, beginning with a letter";
        place.value(steps!["name"], message, help);
    }
    if file.controller == Some(false) && !file.applications.0.is_empty() {
        let help = "remove `controller: false`, or the applications";
        place.key(steps!["controller"], "applications need a controller", help);
    }
    let mtu = file.mtu.unwrap_or(DEFAULT_MTU);
    check_mtu(&mut place, steps!["mtu"], mtu);
    let timers = timers(&mut place, file);
    let mut nodes = nodes(&mut place, file);
    let plans = links(&mut place, file, &nodes);
    let pools = Pools::new(&mut place, file);
    let prefixes = assign(&mut place, file, &pools, &mut nodes, &plans);
    functions(&mut place, file, &mut nodes);
    let mut topology = Topology {
        name: file.name.clone(),
        seed: file.seed,
        mtu,
        timers,
        srv6_block: pools.block,
        nodes,
        segments: Vec::with_capacity(plans.len()),
        controller: file.controller.unwrap_or(!file.applications.0.is_empty()),
        applications: Vec::new(),
        events: Vec::new(),
        tests: Vec::new(),
    };
    let headroom = if topology.has_srv6() { SRV6_HEADROOM } else { 0 };
    for (plan, (ipv4, ipv6)) in plans.iter().zip(prefixes) {
        let inner = plan.body.mtu.unwrap_or(mtu);
        check_mtu(&mut place, &[plan.at.as_slice(), steps!["mtu"]].concat(), inner);
        let segment = topology.segments.len();
        let backend = backend(&mut place, plan, &topology.nodes);
        check_queues(&mut place, plan, backend, inner.saturating_add(headroom));
        let mut ends = Vec::with_capacity(plan.members.len());
        for (member, node) in plan.members.iter().copied().enumerate() {
            let side = &plan.sides[member];
            let interfaces = &mut topology.nodes[node].interfaces;
            ends.push(End { node, interface: interfaces.len() });
            interfaces.push(Interface {
                name: plan.devices[member].clone(),
                segment,
                ipv4: member4(ipv4, member),
                ipv6: member6(ipv6, member),
                mtu: inner.saturating_add(headroom),
                cost: side.cost,
                rate: side.rate,
                queue: side.queue,
                impairments: side.impairments.clone(),
                backend,
                adjacencies: Vec::new(),
            });
        }
        topology.segments.push(Segment {
            name: plan.name.clone(),
            kind: plan.kind,
            ends,
            ipv4,
            ipv6,
            switch: plan.switch,
        });
    }
    adjacencies(&mut place, &plans, &mut topology);
    check_routing(&mut place, &plans, &topology);
    attachment::check(&mut place, file, &topology);
    switches::check(&mut place, &topology);
    programs::check(&mut place, &topology);
    check_hops(&mut place, &topology);
    topology.applications = applications(&mut place, file, &topology);
    topology.events = events(&mut place, file, &topology);
    topology.tests = tests(&mut place, file, &topology);
    // Do not report parts as missing that are excluded because of another error.
    if place.report.is_empty() {
        check_ports(&mut place, &topology);
    }
    if place.report.is_empty() { Ok(topology) } else { Err(place.report) }
}

/// Checks that every XDP data plane has a port.
fn check_ports(place: &mut Place<'_>, topology: &Topology) {
    for node in topology.nodes.iter().filter(|node| node.runs_xdp() && node.interfaces.is_empty()) {
        let message = format!("`{}` has no link: there is nothing for its XDP to do", node.name);
        let help = "give it a link, or `dataplane: kernel` and no `functions:`";
        place.key(steps!["nodes", &*node.name], message, help);
    }
}

/// Reports neighboring routers with different routing protocols: they do not exchange routes,
/// unless one of them has its own configuration that does so.
fn check_routing(place: &mut Place<'_>, plans: &[Plan<'_>], topology: &Topology) {
    for (segment, plan) in topology.segments.iter().zip(plans) {
        let ends = segment.ends.iter().map(|end| &topology.nodes[end.node]);
        let routers: Vec<&Node> = ends.filter(|node| node.is_router()).collect();
        if routers.iter().any(|node| node.extra_config.is_some()) {
            continue;
        }
        let Some(first) = routers.first() else { continue };
        let differs = |node: &&&Node| {
            (node.ipv4_routing, node.ipv6_routing) != (first.ipv4_routing, first.ipv6_routing)
        };
        if let Some(other) = routers.iter().find(differs) {
            let is_virtual = |node: &&&Node| node.kind == NodeKind::Router(RouterKind::Virtual);
            if let Some(node) = [first, other].into_iter().find(is_virtual) {
                let message = format!(
                    "`{}` is a virtual router, which has static routes alone: its neighbor learns \
                     nothing from it",
                    node.name
                );
                let help = "link the FRR routers by an emulated link or a LAN (`engine: true`) in its \
                            place, or give them `routing: [static]`";
                place.key(&plan.at, message, help);
                continue;
            }
            let message = format!(
                "`{}` and `{}` route by different protocols: neither learns what is behind the other",
                first.name, other.name
            );
            let help = "give both the same `routing:`, or redistribute in an FRR node's `config:`";
            place.key(&plan.at, message, help);
        }
    }
}

fn check_mtu(place: &mut Place<'_>, at: &[Step], mtu: u16) {
    // IPv6 requires at least 1,280 bytes (RFC 8200 section 5).
    if !(1280..=9000).contains(&mtu) {
        place.value(at, format!("an MTU of {mtu} is not possible"), "write 1280 to 9000");
    }
}

/// Sets the adjacent routers of every router's interfaces.
fn adjacencies(place: &mut Place<'_>, plans: &[Plan<'_>], topology: &mut Topology) {
    let Topology { nodes, segments, .. } = topology;
    let is_router: Vec<bool> = nodes.iter().map(Node::is_router).collect();
    let (mut counts, mut total) = (vec![0_usize; nodes.len()], 0);
    for (segment, plan) in segments.iter().zip(plans) {
        let routers = segment.ends.iter().filter(|end| is_router[end.node]).count();
        for end in segment.ends.iter().filter(|end| is_router[end.node]) {
            let number = counts[end.node];
            counts[end.node] += routers - 1;
            total += routers - 1;
            if total > MAX_TOTAL_ADJACENCIES {
                let message = format!("routers have more than {MAX_TOTAL_ADJACENCIES} neighbors");
                place.key(&plan.at, message, "use smaller LANs");
                return;
            }
            if counts[end.node] > MAX_ADJACENCIES {
                let name = &nodes[end.node].name;
                let message = format!("`{name}` has more than {MAX_ADJACENCIES} neighbors");
                place.key(&plan.at, message, "remove some of its links");
                return;
            }
            let peers = segment.ends.iter().filter(|peer| peer.node != end.node);
            let list =
                peers.filter(|peer| is_router[peer.node]).zip(number..).map(|(peer, number)| {
                    Adjacency {
                        node: peer.node,
                        interface: peer.interface,
                        // The cast is safe: the number is below MAX_ADJACENCIES.
                        number: number as u16,
                    }
                });
            nodes[end.node].interfaces[end.interface].adjacencies = list.collect();
        }
    }
}
