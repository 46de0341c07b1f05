//! Shortest-path routing as the routers' IGP does it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::graph::{ArcId, Graph, NodeId};

/// The shortest paths from one node, by cost.
#[derive(Debug, Clone)]
pub struct ShortestPaths {
    /// The cost to each node; None if it is unreachable.
    pub cost: Vec<Option<u64>>,
    /// The number of shortest paths to each node, counted up to two. One means that the path is
    /// unambiguous.
    pub ways: Vec<u8>,
}

impl ShortestPaths {
    /// Computes the shortest paths from `source`. Paths can end at a non-transit node but not pass
    /// through it.
    pub fn from(graph: &Graph, source: NodeId) -> Self {
        let mut cost = vec![None; graph.len()];
        let mut ways = vec![0; graph.len()];
        let mut settled = vec![false; graph.len()];
        let mut heap = BinaryHeap::from([(Reverse(0u64), source)]);
        cost[source.index()] = Some(0);
        ways[source.index()] = 1;
        while let Some((Reverse(so_far), node)) = heap.pop() {
            if std::mem::replace(&mut settled[node.index()], true) {
                continue;
            }
            if node != source && !graph.node(node).transit {
                continue;
            }
            for (_, arc) in graph.out(node) {
                let (to, through) = (arc.to.index(), so_far + u64::from(arc.cost));
                match cost[to] {
                    Some(known) if known < through => {}
                    Some(known) if known == through => {
                        ways[to] = (ways[to] + ways[node.index()]).min(2);
                    }
                    _ => {
                        cost[to] = Some(through);
                        ways[to] = ways[node.index()];
                        heap.push((Reverse(through), arc.to));
                    }
                }
            }
        }
        Self { cost, ways }
    }

    /// The number of leading `arcs`, which start at this tree's source, that the IGP is certain to
    /// follow: the longest prefix that is the only shortest path to each of its nodes.
    pub fn follows(&self, graph: &Graph, arcs: &[ArcId]) -> usize {
        let mut along = 0;
        for (count, &id) in arcs.iter().enumerate() {
            let arc = graph.arc(id);
            along += u64::from(arc.cost);
            let to = arc.to.index();
            if self.cost[to] != Some(along) || self.ways[to] != 1 {
                return count;
            }
        }
        arcs.len()
    }
}

/// The arcs over which `node` forwards towards `target`: all that are on a shortest path.
/// `to_target` holds the costs to the target, as computed by [`costs_to`].
pub fn next_arcs<'a>(
    graph: &'a Graph,
    node: NodeId,
    target: NodeId,
    to_target: &'a [Option<u64>],
) -> impl Iterator<Item = ArcId> + 'a {
    graph.out(node).filter_map(move |(id, arc)| {
        let passable = arc.to == target || graph.node(arc.to).transit;
        let rest = to_target[arc.to.index()].filter(|_| passable)?;
        (to_target[node.index()] == Some(rest + u64::from(arc.cost))).then_some(id)
    })
}

/// The IGP cost from every node to `target`.
pub fn costs_to(graph: &Graph, target: NodeId) -> Vec<Option<u64>> {
    // Search the reversed graph, because costs can differ by direction.
    let reversed = graph
        .arcs()
        .map(|(_, arc)| crate::graph::GraphArc { from: arc.to, to: arc.from, ..*arc })
        .collect();
    let nodes = (0..graph.len()).map(|n| graph.node(NodeId(n as u32)).clone()).collect();
    ShortestPaths::from(&Graph::new(nodes, reversed), target).cost
}
