//! Path search for applications.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use crate::graph::{ArcId, Graph, NodeId};

/// The constraints of a search.
pub struct Limits<'a> {
    /// The free bandwidth of an arc, in bits per second; `u64::MAX` if it is unlimited.
    pub free: &'a dyn Fn(ArcId) -> u64,
    /// The minimum free bandwidth; narrower arcs are excluded.
    pub demand: u64,
    /// Excluded arcs.
    pub without_arcs: &'a HashSet<ArcId>,
    /// Excluded nodes.
    pub without_nodes: &'a HashSet<NodeId>,
}

/// A path found by a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The arcs, first to last.
    pub arcs: Vec<ArcId>,
    /// The sum of the IGP costs.
    pub cost: u64,
}

/// The path with the fewest hops over arcs that cover the demand. Ties are broken by lowest IGP
/// cost, then by width, then deterministically.
///
/// One pass of Dijkstra on (hops, cost). Every predecessor has fewer hops, so it is settled with
/// its final width before its successors. Keeping the wider of two equal paths is therefore exact.
pub fn fewest_hops(graph: &Graph, from: NodeId, to: NodeId, limits: &Limits<'_>) -> Option<Found> {
    const FAR: (u32, u64) = (u32::MAX, u64::MAX);
    let mut best = vec![FAR; graph.len()];
    let mut width = vec![0u64; graph.len()];
    let mut parent: Vec<Option<ArcId>> = vec![None; graph.len()];
    let mut settled = vec![false; graph.len()];
    best[from.index()] = (0, 0);
    width[from.index()] = u64::MAX;
    let mut heap = BinaryHeap::from([Reverse(((0u32, 0u64), from))]);
    while let Some(Reverse((key, node))) = heap.pop() {
        if std::mem::replace(&mut settled[node.index()], true) {
            continue;
        }
        if node == to {
            break;
        }
        if node != from && !graph.node(node).transit {
            continue;
        }
        for (id, arc) in graph.out(node) {
            let free = (limits.free)(id);
            if !arc.usable
                || free < limits.demand
                || limits.without_arcs.contains(&id)
                || limits.without_nodes.contains(&arc.to)
            {
                continue;
            }
            let next = (key.0 + 1, key.1 + u64::from(arc.cost));
            let wide = width[node.index()].min(free);
            let at = arc.to.index();
            if next < best[at] {
                heap.push(Reverse((next, arc.to)));
            }
            if next < best[at] || (next == best[at] && wide > width[at]) {
                best[at] = next;
                width[at] = wide;
                parent[at] = Some(id);
            }
        }
    }
    trace(graph, from, to, &parent).map(|arcs| Found { cost: best[to.index()].1, arcs })
}

/// The path with the most free bandwidth on its narrowest arc, and among those the one with the
/// fewest hops. Also returns its width.
pub fn widest(
    graph: &Graph,
    from: NodeId,
    to: NodeId,
    free: &dyn Fn(ArcId) -> u64,
) -> Option<(Found, u64)> {
    let mut width = vec![0u64; graph.len()];
    let mut reached = vec![false; graph.len()];
    let mut settled = vec![false; graph.len()];
    width[from.index()] = u64::MAX;
    reached[from.index()] = true;
    let mut heap = BinaryHeap::from([(u64::MAX, from)]);
    while let Some((wide, node)) = heap.pop() {
        if std::mem::replace(&mut settled[node.index()], true) {
            continue;
        }
        if node != from && !graph.node(node).transit {
            continue;
        }
        for (id, arc) in graph.out(node) {
            if !arc.usable {
                continue;
            }
            let (at, through) = (arc.to.index(), wide.min(free(id)));
            if !reached[at] || through > width[at] {
                reached[at] = true;
                width[at] = through;
                heap.push((through, arc.to));
            }
        }
    }
    if !reached[to.index()] {
        return None;
    }
    // Now that the width is known, find the path with the fewest hops among those that have it.
    let none = (HashSet::new(), HashSet::new());
    let limits =
        Limits { free, demand: width[to.index()], without_arcs: &none.0, without_nodes: &none.1 };
    fewest_hops(graph, from, to, &limits).map(|found| (found, width[to.index()]))
}

/// The first `count` simple paths by (hops, cost), regardless of free bandwidth: Yen's algorithm.
pub fn alternatives(graph: &Graph, from: NodeId, to: NodeId, count: usize) -> Vec<Found> {
    let search = |start, arcs: &HashSet<ArcId>, nodes: &HashSet<NodeId>| {
        let limits =
            Limits { free: &|_| u64::MAX, demand: 0, without_arcs: arcs, without_nodes: nodes };
        fewest_hops(graph, start, to, &limits)
    };
    let mut found: Vec<Found> = Vec::new();
    let mut waiting: Vec<Found> =
        search(from, &HashSet::new(), &HashSet::new()).into_iter().collect();
    while found.len() < count {
        let Some(next) = (0..waiting.len())
            .min_by_key(|&at| (waiting[at].arcs.len(), waiting[at].cost, waiting[at].arcs.clone()))
        else {
            break;
        };
        let next = waiting.swap_remove(next);
        let mut passed = HashSet::new();
        let mut spur = from;
        for at in 0..next.arcs.len() {
            let root = &next.arcs[..at];
            let taken = found
                .iter()
                .chain([&next])
                .filter(|other| other.arcs.len() > at && other.arcs[..at] == *root)
                .map(|other| other.arcs[at])
                .collect();
            if let Some(rest) = search(spur, &taken, &passed) {
                let root_cost: u64 = root.iter().map(|&id| u64::from(graph.arc(id).cost)).sum();
                let arcs = [root, &rest.arcs].concat();
                let candidate = Found { arcs, cost: root_cost + rest.cost };
                if !waiting.contains(&candidate) {
                    waiting.push(candidate);
                }
            }
            passed.insert(spur);
            spur = graph.arc(next.arcs[at]).to;
        }
        found.push(next);
    }
    found
}

fn trace(graph: &Graph, from: NodeId, to: NodeId, parent: &[Option<ArcId>]) -> Option<Vec<ArcId>> {
    let mut arcs = Vec::new();
    let mut at = to;
    while at != from {
        let id = parent[at.index()]?;
        arcs.push(id);
        at = graph.arc(id).from;
    }
    arcs.reverse();
    Some(arcs)
}
