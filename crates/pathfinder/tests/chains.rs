//! Paths through service functions.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod common;

use std::collections::{BTreeSet, HashSet};

use common::scenario::{APP, path, reserved, secs, world};
use common::world::demand;
use common::{Net, demo, forward, shapes};
use pathfinder::layers::{self, Layers};
use pathfinder::search::{self, Limits};
use pathfinder::{ArcId, Demand, Graph, NodeId, State, segments};
use proptest::prelude::*;
use srv6::{SegmentList, Sid};

fn names(functions: &[&str]) -> Vec<String> {
    functions.iter().map(|name| (*name).into()).collect()
}

/// The best path by hops, then cost, over arcs with a capacity of at least `bps`, through these
/// functions.
fn find(
    graph: &Graph,
    from: NodeId,
    to: NodeId,
    functions: &[String],
    bps: u64,
) -> Option<Vec<ArcId>> {
    let layers = Layers::new(graph, functions);
    let capacity = |arc: ArcId| graph.arc(arc).capacity.map_or(u64::MAX, model::Bandwidth::bps);
    let free = |arc| capacity(layers.original(arc));
    let none = (HashSet::new(), HashSet::new());
    let limits = Limits { free: &free, demand: bps, without_arcs: &none.0, without_nodes: &none.1 };
    let (start, end) = (layers.start(from), layers.end(to));
    let found = search::fewest_hops(layers.graph(), start, end, &limits)?;
    Some(layers.originals(&found.arcs))
}

/// Hops and cost.
type Length = (u32, u64);
const FAR: Length = (u32::MAX, u64::MAX);

fn sum(a: Length, b: Length) -> Length {
    if a == FAR || b == FAR { FAR } else { (a.0 + b.0, a.1 + b.1) }
}

/// Between all pairs of nodes, the shortest path of at least one link; also from a node back to
/// itself.
fn ways(graph: &Graph, bps: u64) -> Vec<Vec<Length>> {
    let size = graph.len();
    let mut best = vec![vec![FAR; size]; size];
    for (_, arc) in graph.arcs() {
        if arc.usable && arc.capacity.is_none_or(|capacity| capacity.bps() >= bps) {
            let known = &mut best[arc.from.index()][arc.to.index()];
            *known = (*known).min((1, u64::from(arc.cost)));
        }
    }
    for over in (0..size).filter(|&n| graph.node(NodeId(n as u32)).transit) {
        for from in 0..size {
            for to in 0..size {
                let around = sum(best[from][over], best[over][to]);
                best[from][to] = best[from][to].min(around);
            }
        }
    }
    best
}

/// The expected result of [`find`], from all choices of function instances and of the node that
/// decapsulates.
fn shortest(
    graph: &Graph,
    from: NodeId,
    to: NodeId,
    functions: &[String],
    bps: u64,
) -> Option<Length> {
    let ways = ways(graph, bps);
    let mut reached: Vec<(NodeId, Length)> = vec![(from, (0, 0))];
    for function in functions {
        let nodes = (0..graph.len() as u32).map(NodeId);
        let instances = nodes.filter(|&id| graph.node(id).function(function).is_some());
        reached = instances
            .map(|id| {
                let lengths = reached.iter();
                let length = lengths.map(|(at, l)| sum(*l, ways[at.index()][id.index()])).min();
                (id, length.unwrap_or(FAR))
            })
            .collect();
    }
    let rest = |(at, length): &(NodeId, Length)| {
        let egresses = (0..graph.len() as u32).map(NodeId).filter(|&id| {
            let node = graph.node(id);
            node.sids.is_some() && (node.transit || id == to)
        });
        let behind = |id: NodeId| if id == to { (0, 0) } else { ways[id.index()][to.index()] };
        egresses.map(|id| sum(sum(*length, ways[at.index()][id.index()]), behind(id))).min()
    };
    let found = reached.iter().filter_map(rest).min()?;
    (found != FAR).then_some(found)
}

fn length(graph: &Graph, arcs: &[ArcId]) -> Length {
    (arcs.len() as u32, arcs.iter().map(|&id| u64::from(graph.arc(id).cost)).sum())
}

/// The owner of a SID.
fn owner(graph: &Graph, sid: Sid) -> Option<NodeId> {
    (0..graph.len() as u32).map(NodeId).find(|&id| {
        let node = graph.node(id);
        let of_node = node.sids.is_some_and(|s| [s.end, s.decap_ipv4, s.decap_ipv6].contains(&sid));
        of_node
            || node.functions.iter().any(|(_, function)| *function == sid)
            || graph.out(id).any(|(_, arc)| arc.end_x == Some(sid))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_search_finds_the_shortest_way_through_every_order_of_functions(
        shape in shapes(6),
        places in prop::collection::vec((0..6usize, 0..3usize), 0..7),
        order in prop::sample::subsequence(vec!["a", "b", "c"], 1..=3).prop_shuffle(),
        mbps in 1..6u64,
    ) {
        let mut net = shape.net();
        for (router, function) in places {
            let node = format!("r{}", router % shape.routers);
            let name = ["a", "b", "c"][function];
            let id = net.id(&node).index();
            if net.nodes[id].functions.iter().all(|(known, _)| known != name) {
                net.function(&node, name);
            }
        }
        let (graph, functions, bps) = (net.graph(), names(&order), mbps * 20_000_000);
        let ids = || (0..graph.len() as u32).map(NodeId);
        for (from, to) in ids().flat_map(|from| ids().map(move |to| (from, to))) {
            if from == to {
                continue;
            }
            let found = find(&graph, from, to, &functions, bps);
            let wanted = shortest(&graph, from, to, &functions, bps);
            prop_assert_eq!(found.as_ref().map(|arcs| length(&graph, arcs)), wanted);
            let Some(arcs) = found else { continue };
            let mut at = from;
            for &id in &arcs {
                prop_assert_eq!(graph.arc(id).from, at);
                at = graph.arc(id).to;
            }
            prop_assert_eq!(at, to);
            let served = layers::served(&graph, &arcs, &functions).unwrap();
            prop_assert!(served.is_sorted_by(|a, b| a.0 < b.0));
            let Ok(lists) = segments::through(&graph, from, &arcs, &served) else { continue };
            let list = lists.ipv4.0;
            let crossed: BTreeSet<ArcId> = arcs.iter().copied().collect();
            prop_assert_eq!(forward(&graph, from, to, &list), Some(crossed), "{:?}", list);
            let mut rest = list.iter();
            prop_assert!(served.iter().all(|(_, sid)| rest.any(|one| one == sid)), "{:?}", list);
            for pair in list.windows(2) {
                let is_function = served.iter().any(|(_, sid)| *sid == pair[0]);
                let same = owner(&graph, pair[0]) == owner(&graph, pair[1]);
                prop_assert!(!(is_function && same), "one node twice in a row: {:?}", list);
            }
        }
    }
}

fn through(net: &Net, mbps: u64, functions: &[&str]) -> Demand {
    Demand { functions: names(functions), ..demand(net, 7000, "h3", "h2", mbps) }
}

/// The demo network with a firewall on each branch.
fn two_firewalls() -> Net {
    let mut net = demo();
    net.function("r3", "fw");
    net.function("r4", "fw");
    net.function("r2", "ids");
    net
}

#[test]
fn an_application_goes_by_its_functions_within_its_bound() {
    let net = two_firewalls();
    let mut world = world(&net);
    world.add(through(&net, 50, &["fw"]));
    world.run(secs(2));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r3-r5-h2");
    assert_eq!(world.decider.served(APP), [2]);
    let lists = world.decider.app(APP).unwrap().lists;
    let (fw, decap) = (common::sid(5, 0xf000), common::sid(7, common::DECAP_IPV4));
    assert_eq!(lists.ipv4, SegmentList(vec![fw, decap]));
    // More than that branch carries.
    world.add(through(&net, 200, &["fw"]));
    world.run(secs(12));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r2-r4-r5-h2");
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    world.add(through(&net, 50, &["ids", "fw"]));
    world.run(secs(2));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r2-r4-r5-h2");
    assert_eq!(world.decider.served(APP), [2, 3]);
}

#[test]
fn a_function_that_is_withdrawn_is_found_elsewhere() {
    let mut net = two_firewalls();
    let mut world = world(&net);
    world.add(through(&net, 50, &["fw"]));
    world.run(secs(2));
    let r3 = net.id("r3").index();
    let gone = net.nodes[r3].functions.pop();
    world.set_graph(net.graph());
    world.run(secs(1));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r2-r4-r5-h2");
    // No instance left: no packets are sent to the withdrawn one, whose rules may be gone, nor past
    // the function.
    let r4 = net.id("r4").index();
    net.nodes[r4].functions.clear();
    world.set_graph(net.graph());
    world.run(secs(1));
    let status = world.decider.app(APP).unwrap();
    assert_eq!((status.state, &status.lists), (State::Unreachable, &segments::Lists::default()));
    assert!(world.decider.served(APP).is_empty());
    net.nodes[r3].functions.extend(gone);
    world.set_graph(net.graph());
    world.run(secs(1));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r3-r5-h2");
}

#[test]
fn a_link_that_is_crossed_twice_carries_twice_as_much() {
    // The function is at the end of a stub: packets enter and leave over the same link.
    let mut net = Net::new(&["h3", "h2", "r1", "r2", "r3"]);
    net.link("h3", "r1", 1, 0);
    net.link("r1", "r2", 1, 100);
    net.link("r2", "h2", 1, 0);
    net.link("r2", "r3", 1, 100);
    net.function("r3", "a");
    net.function("r1", "b");
    let mut world = world(&net);
    // To r3 over r1-r2, back to r1, and over r1-r2 once more.
    world.add(through(&net, 40, &["a", "b"]));
    world.run(secs(1));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r2-r3-r2-r1-r2-h2");
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 80);
    assert_eq!(reserved(&net, &world.decider, "r2", "r1"), 40);
    world.add(through(&net, 60, &["a", "b"]));
    world.run(secs(3));
    let state = world.decider.app(APP).unwrap().state;
    assert!(matches!(state, State::Degraded { free_bps: 50_000_000, .. }), "{state:?}");
    // Another path to r2 carries the traffic twice.
    net.add("r4");
    net.link("r1", "r4", 1, 200);
    net.link("r4", "r2", 1, 200);
    world.set_graph(net.graph());
    world.run(secs(12));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r4-r2-r3-r2-r1-r4-r2-h2");
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(reserved(&net, &world.decider, "r4", "r2"), 120);
}

#[test]
fn a_demand_that_no_link_carries_twice_uses_two_links() {
    let mut net = Net::new(&["h3", "h2", "r1", "r2", "r3", "r4"]);
    net.link("h3", "r1", 1, 0);
    net.link("r1", "r2", 1, 100);
    net.link("r1", "r4", 1, 100);
    net.link("r4", "r2", 1, 100);
    net.link("r2", "h2", 1, 0);
    net.link("r2", "r3", 1, 100);
    net.function("r3", "a");
    net.function("r1", "b");
    let mut world = world(&net);
    world.add(through(&net, 60, &["a", "b"]));
    world.run(secs(1));
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(["r2", "r4"].map(|to| reserved(&net, &world.decider, "r1", to)), [60, 60]);
}

#[test]
fn a_function_at_the_end_does_not_decapsulate() {
    let mut net = Net::new(&["h1", "h2", "r1"]);
    net.link("h1", "r1", 1, 0);
    net.link("r1", "h2", 1, 0);
    let fw = net.function("r1", "fw");
    let graph = net.graph();
    let arcs = common::along(&graph, &["h1", "r1", "h2"]);
    let lists = segments::through(&graph, net.id("h1"), &arcs, &[(1, fw)]);
    assert_eq!(lists, Err(segments::Error::NoEgress("h2".into())));
}

#[test]
fn no_function_is_done_where_packets_begin_or_end() {
    let mut net = Net::new(&["h1", "h2", "r1", "r2"]);
    net.link("h1", "r1", 1, 0);
    net.link("r1", "r2", 1, 0);
    net.link("r2", "h2", 1, 0);
    net.function("r2", "fw");
    let (graph, fw) = (net.graph(), names(&["fw"]));
    let names_of = |from: &str, to: &str| {
        let arcs = find(&graph, net.id(from), net.id(to), &fw, 0)?;
        let nodes = arcs.iter().map(|&id| graph.node(graph.arc(id).to).name.as_str());
        Some(nodes.collect::<Vec<_>>().join("-"))
    };
    // A node other than the function's decapsulates.
    assert_eq!(names_of("h1", "h2").as_deref(), Some("r1-r2-r1-r2-h2"));
    assert_eq!(names_of("h2", "h1").as_deref(), Some("r2-r1-h1"));
    // Packets that originate at the function's node are only processed when they return to it.
    assert_eq!(names_of("r2", "h1").as_deref(), Some("r1-r2-r1-h1"));
    let arcs = find(&graph, net.id("h2"), net.id("h1"), &names(&["fw", "fw"]), 0).unwrap();
    let served = layers::served(&graph, &arcs, &names(&["fw", "fw"])).unwrap();
    assert_eq!(served.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_list_with_a_function_is_no_longer_than_a_function_keeps() {
    // A chain of equal parallel links, each of which needs its own SID, after a function and a link
    // that needs none.
    let names: Vec<String> = (0..=SegmentList::MAX_SERVED + 1).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut net = Net::new(&names);
    for (at, pair) in names.windows(2).enumerate() {
        net.link(pair[0], pair[1], 1, 0);
        if at > 1 {
            net.link(pair[0], pair[1], 1, 0);
        }
    }
    net.function("r1", "fw");
    let graph = net.graph();
    let length = |last: usize| {
        let arcs = common::along(&graph, &names[..=last]);
        let served = layers::served(&graph, &arcs, &self::names(&["fw"])).unwrap();
        let lists = segments::through(&graph, net.id("r0"), &arcs, &served);
        lists.map(|lists| lists.ipv4.0.len())
    };
    let most = SegmentList::MAX_SERVED;
    assert_eq!(length(most), Ok(most));
    assert_eq!(length(most + 1), Err(segments::Error::TooLong(most + 1, most)));
}
