//! Checks the searches against all simple paths of small networks.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;

use common::{Net, demo, shapes, simple_paths};
use pathfinder::search::{self, Found, Limits};
use pathfinder::{ArcId, Graph, NodeId};
use proptest::prelude::*;

fn free(graph: &Graph) -> impl Fn(ArcId) -> u64 {
    |id| graph.arc(id).capacity.map_or(u64::MAX, |capacity| capacity.bps())
}

fn width(graph: &Graph, arcs: &[ArcId]) -> u64 {
    arcs.iter().map(|&id| free(graph)(id)).min().unwrap_or(u64::MAX)
}

fn cost(graph: &Graph, arcs: &[ArcId]) -> u64 {
    arcs.iter().map(|&id| u64::from(graph.arc(id).cost)).sum()
}

fn fewest(graph: &Graph, from: NodeId, to: NodeId, demand: u64) -> Option<Found> {
    let none = (HashSet::new(), HashSet::new());
    let free = free(graph);
    let limits = Limits { free: &free, demand, without_arcs: &none.0, without_nodes: &none.1 };
    search::fewest_hops(graph, from, to, &limits)
}

#[test]
fn fewest_hops_takes_the_short_branch_while_it_covers() {
    let net = demo();
    let graph = net.graph();
    let hops = |mbps: u64| {
        fewest(&graph, net.id("h3"), net.id("h2"), mbps * 1_000_000).map(|found| found.arcs.len())
    };
    assert_eq!([100, 101, 500, 501].map(hops), [Some(4), Some(5), Some(5), None]);
}

#[test]
fn ties_are_broken_by_cost_and_then_by_bandwidth() {
    let mut net = Net::new(&["r1", "r2", "r3", "r4", "r5"]);
    for (via, cost, mbps) in [("r2", 5, 900), ("r3", 2, 100), ("r4", 2, 300)] {
        net.link("r1", via, cost, mbps);
        net.link(via, "r5", 1, mbps);
    }
    let graph = net.graph();
    let via = |demand| {
        let found = fewest(&graph, net.id("r1"), net.id("r5"), demand).unwrap();
        graph.node(graph.arc(found.arcs[0]).to).name.clone()
    };
    assert_eq!(via(0), "r4");
    assert_eq!(via(400_000_000), "r2");
}

#[test]
fn excluded_nodes_are_not_used() {
    let net = demo();
    let graph = net.graph();
    let nodes = HashSet::from([net.id("r3")]);
    let free = |_| u64::MAX;
    let limits =
        Limits { free: &free, demand: 0, without_arcs: &HashSet::new(), without_nodes: &nodes };
    let found = search::fewest_hops(&graph, net.id("h3"), net.id("h2"), &limits).unwrap();
    assert_eq!(found.arcs.len(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn fewest_hops_is_the_best_of_all_that_cover(shape in shapes(6), demand in 0..7u64) {
        let graph = shape.net().graph();
        let demand = demand * 20_000_000;
        for (from, to) in pairs(&graph) {
            let rank = |arcs: &Vec<ArcId>| {
                (arcs.len(), cost(&graph, arcs), u64::MAX - width(&graph, arcs))
            };
            let best = simple_paths(&graph, from, to)
                .iter()
                .filter(|arcs| width(&graph, arcs) >= demand)
                .map(rank)
                .min();
            let found = fewest(&graph, from, to, demand);
            prop_assert_eq!(found.as_ref().map(|found| rank(&found.arcs)), best);
            if let Some(found) = found {
                prop_assert_eq!(found.cost, cost(&graph, &found.arcs));
            }
        }
    }

    #[test]
    fn widest_is_the_widest_of_all_and_of_those_the_shortest(shape in shapes(6)) {
        let graph = shape.net().graph();
        for (from, to) in pairs(&graph) {
            let all = simple_paths(&graph, from, to);
            let rank = |arcs: &Vec<ArcId>| (u64::MAX - width(&graph, arcs), arcs.len());
            let found = search::widest(&graph, from, to, &free(&graph));
            prop_assert_eq!(
                found.as_ref().map(|(found, _)| rank(&found.arcs)),
                all.iter().map(rank).min()
            );
            if let Some((found, wide)) = found {
                prop_assert_eq!(wide, width(&graph, &found.arcs));
            }
        }
    }

    #[test]
    fn alternatives_are_all_simple_paths_in_order(shape in shapes(5), count in 1..40usize) {
        let graph = shape.net().graph();
        for (from, to) in pairs(&graph) {
            let mut all: Vec<(usize, u64)> = simple_paths(&graph, from, to)
                .iter()
                .map(|arcs| (arcs.len(), cost(&graph, arcs)))
                .collect();
            all.sort_unstable();
            all.truncate(count);
            let found = search::alternatives(&graph, from, to, count);
            let ranks: Vec<_> = found.iter().map(|found| (found.arcs.len(), found.cost)).collect();
            prop_assert_eq!(ranks, all);
            let different: HashSet<_> = found.iter().map(|found| &found.arcs).collect();
            prop_assert_eq!(different.len(), found.len());
            for Found { arcs, cost: sum } in &found {
                let mut nodes = HashSet::from([from]);
                let mut at = from;
                for &id in arcs {
                    prop_assert_eq!(graph.arc(id).from, at);
                    at = graph.arc(id).to;
                    prop_assert!(nodes.insert(at), "a node twice");
                }
                prop_assert_eq!((at, *sum), (to, cost(&graph, arcs)));
            }
        }
    }
}

fn pairs(graph: &Graph) -> Vec<(NodeId, NodeId)> {
    let ids = || (0..graph.len() as u32).map(NodeId);
    ids().flat_map(|from| ids().map(move |to| (from, to))).filter(|(a, b)| a != b).collect()
}
