//! An immutable snapshot of the network, in compressed sparse rows.

use std::collections::BTreeMap;

use model::{Bandwidth, NodeSids, Sid};

/// A node, for as long as its [`crate::Ted`] lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// An interface of a node, for as long as its [`crate::Ted`] lives. Load and reservations belong
/// to ports, since all neighbours on a LAN share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// An arc of one snapshot: one neighbour behind one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArcId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl PortId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// The node's name.
    pub name: String,
    /// Whether traffic of others may pass.
    pub transit: bool,
    /// The node's SIDs, when it speaks SRv6.
    pub sids: Option<NodeSids>,
    /// The service functions that work here, and the SID with its argument that leads to each.
    pub functions: Vec<(String, Sid)>,
}

impl GraphNode {
    /// The SID of a service function that works here.
    pub fn function(&self, name: &str) -> Option<Sid> {
        self.functions.iter().find(|(function, _)| function == name).map(|(_, sid)| *sid)
    }
}

/// A usable direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphArc {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The sender's interface.
    pub port: PortId,
    /// The IGP's cost.
    pub cost: u32,
    /// What the port can send; absent when nothing limits it.
    pub capacity: Option<Bandwidth>,
    /// End.X over this arc.
    pub end_x: Option<Sid>,
    /// Whether applications may be sent over it. The IGP uses the others too: a node whose daemon
    /// is silent may well route on.
    pub usable: bool,
}

/// A snapshot: nodes, and the arcs that the IGP sees, sorted by sender.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<GraphNode>,
    arcs: Vec<GraphArc>,
    /// `arcs[first[n]..first[n + 1]]` leave node n.
    first: Vec<u32>,
}

impl Graph {
    /// A snapshot of `nodes` (by id) and `arcs` (in any order; the order of equal senders is kept).
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

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of `id`.
    pub fn node(&self, id: NodeId) -> &GraphNode {
        &self.nodes[id.index()]
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|at| NodeId(at as u32))
    }

    /// The arc of `id`.
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

/// A path: where it starts, and the ports and nodes that it crosses. It outlives its snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    /// The first node.
    pub start: NodeId,
    /// Each step's port, and the node behind it.
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

    /// The ports, each once, and how often the path crosses it: a way through service functions may
    /// come back.
    pub fn crossings(&self) -> BTreeMap<PortId, u64> {
        let mut crossings = BTreeMap::new();
        self.ports().for_each(|port| *crossings.entry(port).or_default() += 1);
        crossings
    }

    /// The path's arcs in `graph`, or nothing if one of them is not there, or not to be used.
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
