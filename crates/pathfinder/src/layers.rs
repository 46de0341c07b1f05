//! Paths through service functions, as a layered graph: one copy of the network per number of
//! completed functions.
//!
//! A packet that arrives at a node with its next function is processed there and continues in the
//! next layer. Processing it earlier is never worse. A function runs on arrival only: a node runs
//! one function at a time, and none for packets that originate there. After the last function the
//! packet needs a node that decapsulates, other than the node of that function; arriving there
//! leads to the last layer. So every path through the layers visits the functions in order, and any
//! search finds it like a path through the plain network.

use srv6::Sid;

use crate::graph::{ArcId, Graph, GraphArc, GraphNode, NodeId};

/// The layered graph for one sequence of functions.
#[derive(Debug)]
pub struct Layers {
    graph: Graph,
    /// The network's arc for each arc of the layers.
    arcs: Vec<ArcId>,
    /// The number of nodes in the network.
    size: u32,
    /// The number of functions.
    functions: u32,
}

impl Layers {
    /// Builds the layers of `graph` for `functions`, in this order. Without functions, there is a
    /// single layer equal to `graph`.
    pub fn new(graph: &Graph, functions: &[String]) -> Self {
        let (size, all) = (graph.len() as u32, functions.len() as u32);
        let layers = if all == 0 { 0..=0 } else { 0..=all + 1 };
        let at = |layer: u32, node: NodeId| NodeId(layer * size + node.0);
        let mut arcs: Vec<(GraphArc, ArcId)> = Vec::new();
        for (id, arc) in graph.arcs() {
            let to = graph.node(arc.to);
            for layer in layers.clone() {
                let served =
                    functions.get(layer as usize).is_some_and(|f| to.function(f).is_some());
                let decapsulates = layer == all && all > 0 && to.sids.is_some();
                let next = layer + u32::from(served || decapsulates);
                let (from, to) = (at(layer, arc.from), at(next, arc.to));
                arcs.push((GraphArc { from, to, ..*arc }, id));
            }
        }
        arcs.sort_by_key(|(arc, _)| arc.from);
        let node = |node: u32| {
            let transit = graph.node(NodeId(node)).transit;
            GraphNode { name: String::new(), transit, sids: None, functions: Vec::new() }
        };
        let nodes = layers.flat_map(|_| (0..size).map(node)).collect();
        let (made, arcs) = arcs.into_iter().unzip();
        Self { graph: Graph::new(nodes, made), arcs, size, functions: all }
    }

    /// The layered graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node at which packets from `node` start.
    pub fn start(&self, node: NodeId) -> NodeId {
        node
    }

    /// The node at which packets to `node` end, after all functions.
    pub fn end(&self, node: NodeId) -> NodeId {
        let last = if self.functions == 0 { 0 } else { self.functions + 1 };
        NodeId(last * self.size + node.0)
    }

    /// The network's arc for an arc of the layers.
    pub fn original(&self, arc: ArcId) -> ArcId {
        self.arcs[arc.0 as usize]
    }

    /// The network's arcs for a path through the layers.
    pub fn originals(&self, arcs: &[ArcId]) -> Vec<ArcId> {
        arcs.iter().map(|&arc| self.original(arc)).collect()
    }
}

/// The points at which functions run on the path over `arcs`: for each function, the number of the
/// arc (counted from 1) after which it runs, and the function's SID. Each function runs as early as
/// possible. None if the path misses a function.
pub fn served(graph: &Graph, arcs: &[ArcId], functions: &[String]) -> Option<Vec<(usize, Sid)>> {
    let mut behind = arcs.iter().zip(1..);
    functions
        .iter()
        .map(|function| {
            behind.find_map(|(&arc, at)| {
                Some((at, graph.node(graph.arc(arc).to).function(function)?))
            })
        })
        .collect()
}
