//! An immutable snapshot of the network in compressed sparse row format.

use std::collections::BTreeMap;

use model::{Bandwidth, NodeSids};
use srv6::Sid;

/// ID of a node, stable for the life of its [`crate::Ted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// ID of an interface of a node, stable for the life of its [`crate::Ted`]. Load and reservations
/// are kept per port, because all neighbors on a LAN share one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// ID of an arc in one snapshot: one neighbor on one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(pub u32);

impl NodeId {
    /// The ID as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    /// The ID as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// The node's name.
    pub name: String,
    /// True if the node forwards transit traffic.
    pub transit: bool,
    /// The node's SIDs, if it supports SRv6.
    pub sids: Option<NodeSids>,
    /// The service functions that are up on this node, and the SID (including its argument) of
    /// each.
    pub functions: Vec<(String, Sid)>,
}

impl GraphNode {
    /// The SID of a service function that is up on this node.
    pub fn function(&self, name: &str) -> Option<Sid> {
        self.functions.iter().find(|(function, _)| function == name).map(|(_, sid)| *sid)
    }
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphArc {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The sender's interface.
    pub port: PortId,
    /// The IGP cost.
    pub cost: u32,
    /// The capacity of the port; None if it is unlimited.
    pub capacity: Option<Bandwidth>,
    /// The End.X SID for this arc.
    pub end_x: Option<Sid>,
    /// True if applications may use the arc. The IGP also uses the others: a node with a silent
    /// daemon may still forward.
    pub usable: bool,
}

/// A snapshot: the nodes, and the arcs that the IGP sees, sorted by sender.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    arcs: Vec<GraphArc>,
    /// The arcs that leave node n are `arcs[first[n]..first[n + 1]]`.
    first: Vec<u32>,
}

impl Graph {
    /// A snapshot of `nodes` (by ID) and `arcs` (in any order; the sort by sender is stable).
    pub fn new(nodes: Vec<GraphNode>, mut arcs: Vec<GraphArc>) -> Self {
        arcs.sort_by_key(|arc| arc.from);
        let mut first = vec![0; nodes.len() + 1];
        for arc in &arcs {
            first[arc.from.index() + 1] += 1;
        }
        for n in 0..nodes.len() {
            first[n + 1] += first[n];
        }
        Self { nodes, arcs, first }
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node with ID `id`.
    pub fn node(&self, id: NodeId) -> &GraphNode {
        &self.nodes[id.index()]
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|at| NodeId(at as u32))
    }

    /// The arc with ID `id`.
    pub fn arc(&self, id: ArcId) -> &GraphArc {
        &self.arcs[id.0 as usize]
    }

    /// The arcs that leave `node`.
    pub fn out(&self, node: NodeId) -> impl Iterator<Item = (ArcId, &GraphArc)> {
        let (from, to) = (self.first[node.index()], self.first[node.index() + 1]);
        (from..to).map(|at| (ArcId(at), &self.arcs[at as usize]))
    }

    /// All arcs.
    pub fn arcs(&self) -> impl Iterator<Item = (ArcId, &GraphArc)> {
        self.arcs.iter().enumerate().map(|(at, arc)| (ArcId(at as u32), arc))
    }
}

/// A path: its start, and the ports and nodes that it crosses. It stays valid across snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// The first node.
    pub start: NodeId,
    /// For each hop, the egress port and the next node.
    pub steps: Vec<(PortId, NodeId)>,
}

impl Path {
    /// The path over `arcs` of `graph`.
    pub fn over(graph: &Graph, start: NodeId, arcs: &[ArcId]) -> Self {
        let steps = arcs.iter().map(|&id| (graph.arc(id).port, graph.arc(id).to)).collect();
        Self { start, steps }
    }

    /// The number of links crossed.
    pub fn hops(&self) -> usize {
        self.steps.len()
    }

    /// The nodes, first to last.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.start).chain(self.steps.iter().map(|step| step.1))
    }

    /// The ports, first to last.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.steps.iter().map(|step| step.0)
    }

    /// The ports, each with the number of times the path crosses it. A path through service
    /// functions can cross a port more than once.
    pub fn crossings(&self) -> BTreeMap<PortId, u64> {
        let mut crossings = BTreeMap::new();
        self.ports().for_each(|port| *crossings.entry(port).or_default() += 1);
        crossings
    }

    /// The arcs of the path in `graph`; None if one of them is missing or unusable.
    pub fn arcs(&self, graph: &Graph) -> Option<Vec<ArcId>> {
        let mut at = self.start;
        self.steps
            .iter()
            .map(|&(port, to)| {
                let on_path = |arc: &GraphArc| arc.usable && arc.port == port && arc.to == to;
                let found = graph.out(at).find(|(_, arc)| on_path(arc));
                at = to;
                found.map(|(id, _)| id)
            })
            .collect()
    }
}
