//! Ways through service functions: the network once for every number of functions that are done.
//!
//! A packet that arrives where the next function is has it done, and goes on in the next layer: sooner
//! is never worse. It is done on arrival only: a node does one function at a time, and none for packets
//! that begin there. Behind the last function the packet needs a node that decapsulates, which is another one
//! than the function's; the last layer is reached there. So every path through the layers, which any
//! search finds as it finds one through the network, visits the functions in their order.

use model::Sid;

use crate::graph::{ArcId, Graph, GraphArc, GraphNode, NodeId};

/// The layers of one order of functions.
#[derive(Debug)]
pub struct Layers {
    graph: Graph,
    /// The network's arc behind each of the layers'.
    arcs: Vec<ArcId>,
    /// The network's nodes.
    size: u32,
    /// How many functions there are.
    functions: u32,
}

impl Layers {
    /// The layers of `graph` for these functions, in their order; one that is `graph` itself for none.
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

    /// The network in layers.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where packets of `node` begin.
    pub fn start(&self, node: NodeId) -> NodeId {
        node
    }

    /// Where packets to `node` end, with every function done.
    pub fn end(&self, node: NodeId) -> NodeId {
        let last = if self.functions == 0 { 0 } else { self.functions + 1 };
        NodeId(last * self.size + node.0)
    }

    /// The network's arc behind one of the layers'.
    pub fn original(&self, arc: ArcId) -> ArcId {
        self.arcs[arc.0 as usize]
    }

    /// The network's arcs behind those of a path through the layers.
    pub fn originals(&self, arcs: &[ArcId]) -> Vec<ArcId> {
        arcs.iter().map(|&arc| self.original(arc)).collect()
    }
}

/// Where functions are done on the path over `arcs`: the number of the arc on whose arrival, counted
/// from 1, and the function's SID. Each as early as possible; nothing if one is not on the path.
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
