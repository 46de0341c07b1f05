//! Checks the IGP's shortest paths against Floyd-Warshall.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Net, shapes};
use pathfinder::{Graph, NodeId, igp};
use proptest::prelude::*;

/// The costs between all pairs of nodes.
fn floyd_warshall(graph: &Graph) -> Vec<Vec<Option<u64>>> {
    let n = graph.len();
    let mut cost = vec![vec![None; n]; n];
    for (_, arc) in graph.arcs() {
        let known: &mut Option<u64> = &mut cost[arc.from.index()][arc.to.index()];
        let new = u64::from(arc.cost);
        *known = Some(known.map_or(new, |old| old.min(new)));
    }
    for (at, row) in cost.iter_mut().enumerate() {
        row[at] = Some(0);
    }
    // Only transit nodes can be intermediate.
    for via in (0..n).filter(|&via| graph.node(NodeId(via as u32)).transit) {
        for from in 0..n {
            for to in 0..n {
                if let (Some(a), Some(b)) = (cost[from][via], cost[via][to])
                    && cost[from][to].is_none_or(|old| a + b < old)
                {
                    cost[from][to] = Some(a + b);
                }
            }
        }
    }
    cost
}

#[test]
fn a_host_does_not_forward_between_two_routers() {
    let mut net = Net::new(&["r1", "h1", "r2"]);
    net.link("r1", "h1", 1, 0);
    net.link("h1", "r2", 1, 0);
    let graph = net.graph();
    let tree = igp::ShortestPaths::from(&graph, net.id("r1"));
    assert_eq!(tree.cost, [Some(0), Some(1), None]);
    assert_eq!(igp::costs_to(&graph, net.id("r1")), [Some(0), Some(1), None]);
}

#[test]
fn parallel_links_are_two_ways() {
    let mut net = Net::new(&["r1", "r2", "r3"]);
    net.link("r1", "r2", 1, 0);
    net.link("r1", "r2", 1, 0);
    net.link("r2", "r3", 1, 0);
    let graph = net.graph();
    assert_eq!(igp::ShortestPaths::from(&graph, net.id("r1")).ways, [1, 2, 2]);
    assert_eq!(igp::ShortestPaths::from(&graph, net.id("r2")).ways, [2, 1, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn costs_are_floyd_warshalls(shape in shapes(9)) {
        let graph = shape.net().graph();
        let all = floyd_warshall(&graph);
        for from in (0..graph.len()).map(|n| NodeId(n as u32)) {
            let tree = igp::ShortestPaths::from(&graph, from);
            prop_assert_eq!(&tree.cost, &all[from.index()]);
            let to_there: Vec<_> = all.iter().map(|row| row[from.index()]).collect();
            prop_assert_eq!(igp::costs_to(&graph, from), to_there);
        }
    }

    #[test]
    fn next_arcs_are_all_that_lie_on_a_shortest_path(shape in shapes(7)) {
        let graph = shape.net().graph();
        let all = floyd_warshall(&graph);
        for target in (0..graph.len()).map(|n| NodeId(n as u32)) {
            let costs = igp::costs_to(&graph, target);
            for at in (0..graph.len()).map(|n| NodeId(n as u32)).filter(|&at| at != target) {
                let chosen: Vec<_> = igp::next_arcs(&graph, at, target, &costs).collect();
                let expected: Vec<_> = graph
                    .out(at)
                    .filter(|(_, arc)| arc.to == target || graph.node(arc.to).transit)
                    .filter(|(_, arc)| {
                        let rest = all[arc.to.index()][target.index()];
                        let whole = all[at.index()][target.index()];
                        rest.is_some() && whole == rest.map(|rest| rest + u64::from(arc.cost))
                    })
                    .map(|(id, _)| id)
                    .collect();
                prop_assert_eq!(chosen, expected);
            }
        }
    }
}
