//! Test networks.
// Each test binary uses a different part of this module.
#![allow(dead_code, unreachable_pub)]

pub mod scenario;
pub mod world;

use std::collections::BTreeSet;

use model::{Bandwidth, NodeSids};
use pathfinder::{ArcId, Graph, GraphArc, GraphNode, NodeId, PortId, igp};
use proptest::prelude::*;
use srv6::Sid;

/// The SID fd00::node:function of node `node`: End, or a decapsulating one.
pub fn sid(node: usize, function: u16) -> Sid {
    Sid(format!("fd00::{node:x}:{function:x}").parse().unwrap())
}

pub const END: u16 = 1;
pub const DECAP_IPV4: u16 = 0xd4;
pub const DECAP_IPV6: u16 = 0xd6;
pub const FUNCTION: u16 = 0xf000;

/// A network under construction. Nodes named `h…` are hosts, all others are routers with SIDs.
#[derive(Default)]
pub struct Net {
    pub nodes: Vec<GraphNode>,
    pub arcs: Vec<GraphArc>,
}

impl Net {
    pub fn new(names: &[&str]) -> Self {
        let mut net = Self::default();
        names.iter().for_each(|name| net.add(name));
        net
    }

    /// Adds a node.
    pub fn add(&mut self, name: &str) {
        let (at, transit) = (self.nodes.len(), !name.starts_with('h'));
        let sids = transit.then(|| NodeSids {
            end: sid(at, END),
            decap_ipv4: sid(at, DECAP_IPV4),
            decap_ipv6: sid(at, DECAP_IPV6),
        });
        self.nodes.push(GraphNode { name: name.into(), transit, sids, functions: Vec::new() });
    }

    pub fn id(&self, name: &str) -> NodeId {
        NodeId(self.nodes.iter().position(|node| node.name == name).unwrap() as u32)
    }

    /// Adds both directions of a link; an `mbps` of 0 means unlimited. Returns the port of the
    /// first direction.
    pub fn link(&mut self, a: &str, b: &str, cost: u32, mbps: u64) -> PortId {
        let (a, b) = (self.id(a), self.id(b));
        self.link_ids(a, b, [cost, cost], mbps)
    }

    pub fn link_ids(&mut self, a: NodeId, b: NodeId, costs: [u32; 2], mbps: u64) -> PortId {
        let first = self.arcs.len();
        for (at, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
            let function = 0xe000 + (first + at) as u16;
            self.arcs.push(GraphArc {
                from,
                to,
                port: PortId((first + at) as u32),
                cost: costs[at],
                capacity: (mbps > 0).then(|| Bandwidth::from_mbps(mbps)),
                end_x: self.nodes[from.index()].transit.then(|| sid(from.index(), function)),
                usable: true,
            });
        }
        PortId(first as u32)
    }

    /// Adds a service function to a node and returns its SID.
    pub fn function(&mut self, node: &str, name: &str) -> Sid {
        let id = self.id(node).index();
        let functions = &mut self.nodes[id].functions;
        let own = sid(id, FUNCTION + functions.len() as u16);
        functions.push((name.into(), own));
        own
    }

    pub fn graph(&self) -> Graph {
        Graph::new(self.nodes.clone(), self.arcs.clone())
    }

    /// The network with a silent daemon on a node: the IGP still routes through that node.
    pub fn silent(&self, name: &str) -> Graph {
        let silent = self.id(name);
        let mut arcs = self.arcs.clone();
        for arc in &mut arcs {
            arc.usable = arc.from != silent && arc.to != silent;
        }
        Graph::new(self.nodes.clone(), arcs)
    }

    /// The network without the links of a node.
    pub fn without(&self, name: &str) -> Graph {
        let gone = self.id(name);
        let stays = |arc: &&GraphArc| arc.from != gone && arc.to != gone;
        Graph::new(self.nodes.clone(), self.arcs.iter().filter(stays).copied().collect())
    }
}

/// The demo's network: h1 and h3 on r1, h2 on r5, r1-r3-r5 at 100 and r1-r2-r4-r5 at 500 Mbit/s.
pub fn demo() -> Net {
    let mut net = Net::new(&["h1", "h2", "h3", "r1", "r2", "r3", "r4", "r5"]);
    net.link("h1", "r1", 1, 0);
    net.link("h3", "r1", 1, 0);
    net.link("h2", "r5", 1, 0);
    net.link("r1", "r3", 1, 100);
    net.link("r3", "r5", 1, 100);
    net.link("r1", "r2", 1, 500);
    net.link("r2", "r4", 1, 500);
    net.link("r4", "r5", 1, 500);
    net
}

/// The arcs along the named nodes; the first of parallel ones.
pub fn along(graph: &Graph, names: &[&str]) -> Vec<ArcId> {
    let nodes: Vec<NodeId> = names.iter().map(|name| graph.find(name).unwrap()).collect();
    let arc = |pair: &[NodeId]| graph.out(pair[0]).find(|(_, arc)| arc.to == pair[1]).unwrap().0;
    nodes.windows(2).map(arc).collect()
}

/// Parameters of a random network.
#[derive(Debug, Clone)]
pub struct Shape {
    pub routers: usize,
    /// A spanning tree: the parent of each router except the first, with the costs of the link.
    pub tree: Vec<(usize, [u32; 2])>,
    /// Additional links, including parallel ones.
    pub links: Vec<(usize, usize, [u32; 2])>,
    /// The router of each host.
    pub hosts: Vec<usize>,
    /// Link capacities, used in turn.
    pub mbps: Vec<u64>,
}

impl Shape {
    pub fn net(&self) -> Net {
        let routers = (0..self.routers).map(|n| format!("r{n}"));
        let names: Vec<String> =
            routers.chain((0..self.hosts.len()).map(|n| format!("h{n}"))).collect();
        let mut net = Net::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let id = |n: usize| NodeId((n % self.routers) as u32);
        let mut mbps = self.mbps.iter().copied().cycle();
        for (at, (parent, costs)) in self.tree.iter().take(self.routers - 1).enumerate() {
            let child = NodeId(at as u32 + 1);
            net.link_ids(NodeId((parent % (at + 1)) as u32), child, *costs, mbps.next().unwrap());
        }
        for &(a, b, costs) in self.links.iter().filter(|(a, b, _)| id(*a) != id(*b)) {
            net.link_ids(id(a), id(b), costs, mbps.next().unwrap());
        }
        for (at, &router) in self.hosts.iter().enumerate() {
            net.link_ids(NodeId((self.routers + at) as u32), id(router), [1, 1], 0);
        }
        net
    }
}

/// Connected networks of 2 to `most` routers, often with equal costs and parallel links.
pub fn shapes(most: usize) -> impl Strategy<Value = Shape> {
    let costs = || [1..4u32, 1..4u32];
    (
        2..=most,
        prop::collection::vec((0..most, costs()), most - 1),
        prop::collection::vec((0..most, 0..most, costs()), 0..most),
        prop::collection::vec(0..most, 0..4),
        prop::collection::vec(1..6u64, 3 * most),
    )
        .prop_map(|(routers, tree, links, hosts, mbps)| Shape {
            routers,
            tree,
            links,
            hosts,
            mbps: mbps.into_iter().map(|m| m * 20).collect(),
        })
}

/// All simple paths between two nodes.
pub fn simple_paths(graph: &Graph, from: NodeId, to: NodeId) -> Vec<Vec<ArcId>> {
    fn walk(
        graph: &Graph,
        (at, to): (NodeId, NodeId),
        passed: &mut Vec<NodeId>,
        arcs: &mut Vec<ArcId>,
        all: &mut Vec<Vec<ArcId>>,
    ) {
        if at == to {
            all.push(arcs.clone());
            return;
        }
        if passed.len() > 1 && !graph.node(at).transit {
            return;
        }
        for (id, arc) in graph.out(at) {
            if !passed.contains(&arc.to) {
                passed.push(arc.to);
                arcs.push(id);
                walk(graph, (arc.to, to), passed, arcs, all);
                arcs.pop();
                passed.pop();
            }
        }
    }
    let mut all = Vec::new();
    walk(graph, (from, to), &mut vec![from], &mut Vec::new(), &mut all);
    all
}

/// All arcs that packets from `from` to `to` cross by the IGP, over every equal-cost path.
fn flood(graph: &Graph, from: NodeId, to: NodeId) -> Option<BTreeSet<ArcId>> {
    let costs = igp::costs_to(graph, to);
    costs[from.index()]?;
    let mut crossed = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        for id in igp::next_arcs(graph, at, to, &costs).filter(|_| at != to) {
            if crossed.insert(id) {
                waiting.push(graph.arc(id).to);
            }
        }
    }
    Some(crossed)
}

/// All arcs that packets from `from` to `to` cross with the segment list `sids`. None if packets
/// are lost, because a SID has no owner or the list does not end with a decapsulating SID.
pub fn forward(graph: &Graph, from: NodeId, to: NodeId, sids: &[Sid]) -> Option<BTreeSet<ArcId>> {
    let mut crossed = BTreeSet::new();
    let mut at = from;
    for (position, sid) in sids.iter().enumerate() {
        let last = position + 1 == sids.len();
        let owner = (0..graph.len()).map(|n| NodeId(n as u32)).find_map(|id| {
            let own = graph.node(id).sids?;
            let served = graph.node(id).functions.iter().any(|(_, function)| function == sid);
            ((own.end == *sid || served) && !last)
                .then_some((id, None))
                .or((own.decap_ipv4 == *sid && last).then_some((id, None)))
        });
        let adjacency = || {
            let (id, arc) = graph.arcs().find(|(_, arc)| arc.end_x == Some(*sid) && !last)?;
            Some((arc.from, Some(id)))
        };
        let (owner, over) = owner.or_else(adjacency)?;
        crossed.extend(flood(graph, at, owner)?);
        at = owner;
        if let Some(id) = over {
            crossed.insert(id);
            at = graph.arc(id).to;
        }
    }
    crossed.extend(flood(graph, at, to)?);
    Some(crossed)
}
