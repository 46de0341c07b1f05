//! Segment lists: packets follow them, and none is longer than necessary.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{DECAP_IPV4, DECAP_IPV6, END, Net, along, demo, forward, shapes, sid, simple_paths};
use pathfinder::{ArcId, Graph, NodeId, segments};
use proptest::prelude::*;
use srv6::{SegmentList, Sid};

fn ipv4(net: &Net, names: &[&str]) -> Vec<Sid> {
    let graph = net.graph();
    segments::minimal(&graph, net.id(names[0]), &along(&graph, names)).unwrap().ipv4.0
}

fn of(net: &Net, name: &str, function: u16) -> Sid {
    sid(net.id(name).index(), function)
}

#[test]
fn the_igps_own_path_needs_no_list() {
    let net = demo();
    assert_eq!(ipv4(&net, &["h3", "r1", "r3", "r5", "h2"]), []);
    assert_eq!(ipv4(&net, &["h3"]), []);
}

#[test]
fn the_long_branch_needs_one_node_and_the_egress() {
    let net = demo();
    let names = ["h3", "r1", "r2", "r4", "r5", "h2"];
    assert_eq!(ipv4(&net, &names), [of(&net, "r4", END), of(&net, "r5", DECAP_IPV4)]);
    let graph = net.graph();
    let lists = segments::minimal(&graph, net.id("h3"), &along(&graph, &names)).unwrap();
    assert_eq!(lists.ipv6.0, [of(&net, "r4", END), of(&net, "r5", DECAP_IPV6)]);
}

#[test]
fn parallel_links_need_their_adjacency_sid() {
    let mut net = Net::new(&["h1", "r1", "r2", "h2"]);
    for (a, b) in [("h1", "r1"), ("r1", "r2"), ("r1", "r2"), ("r2", "h2")] {
        net.link(a, b, 1, 0);
    }
    let over_the_first = net.arcs[2].end_x.unwrap();
    assert_eq!(ipv4(&net, &["h1", "r1", "r2", "h2"]), [over_the_first, of(&net, "r2", DECAP_IPV4)]);
}

#[test]
fn a_path_that_the_igp_follows_half_way_begins_there() {
    // The IGP follows r1-r2-r3-r4 only to r3; the last link costs more than a detour.
    let mut net = Net::new(&["r1", "r2", "r3", "r4", "r5"]);
    net.link("r1", "r2", 1, 0);
    net.link("r2", "r3", 1, 0);
    net.link("r3", "r4", 9, 0);
    net.link("r3", "r5", 1, 0);
    net.link("r5", "r4", 1, 0);
    let over_the_dear_one = net.arcs[4].end_x.unwrap();
    let list = ipv4(&net, &["r1", "r2", "r3", "r4"]);
    assert_eq!(list, [over_the_dear_one, of(&net, "r4", DECAP_IPV4)]);
}

#[test]
fn a_host_has_no_adjacency_sid_to_choose_its_own_link() {
    let mut net = Net::new(&["h1", "r1", "r2", "r3"]);
    for (a, b) in [("h1", "r1"), ("h1", "r2"), ("r1", "r3"), ("r2", "r3")] {
        net.link(a, b, 1, 0);
    }
    // To r1 by its node SID; without it, both equal paths to r3 are used.
    assert_eq!(ipv4(&net, &["h1", "r1", "r3"]), [of(&net, "r1", END), of(&net, "r3", DECAP_IPV4)]);
    net.link("h1", "r1", 1, 0);
    let graph = net.graph();
    let result = segments::minimal(&graph, net.id("h1"), &along(&graph, &["h1", "r1", "r3"]));
    assert_eq!(result, Err(segments::Error::NotEncodable("h1".into())));
}

#[test]
fn a_router_without_srv6_is_passed_by_the_one_before_it() {
    // Two equal paths from r1 to r4. The IGP is unambiguous up to r3, but r3 has no SID to use for
    // it.
    let mut net = Net::new(&["r1", "r2", "r3", "r4", "r5", "r6"]);
    for (a, b) in
        [("r1", "r2"), ("r2", "r3"), ("r3", "r4"), ("r1", "r5"), ("r5", "r6"), ("r6", "r4")]
    {
        net.link(a, b, 1, 0);
    }
    net.nodes[2].sids = None;
    for arc in net.arcs.iter_mut().filter(|arc| arc.from == NodeId(2)) {
        arc.end_x = None;
    }
    let list = ipv4(&net, &["r1", "r2", "r3", "r4"]);
    assert_eq!(list, [of(&net, "r2", END), of(&net, "r4", DECAP_IPV4)]);
}

#[test]
fn without_a_decapsulating_node_there_is_no_list() {
    let mut net = demo();
    for node in &mut net.nodes {
        node.sids = None;
    }
    let graph = net.graph();
    let arcs = along(&graph, &["h3", "r1", "r2", "r4", "r5", "h2"]);
    let result = segments::minimal(&graph, net.id("h3"), &arcs);
    assert_eq!(result, Err(segments::Error::NoEgress("h2".into())));
}

#[test]
fn a_list_longer_than_the_mtu_allows_is_refused() {
    // A chain of equal parallel links: each needs its own SID.
    let names: Vec<String> = (0..=SegmentList::MAX).map(|n| format!("r{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut net = Net::new(&names);
    for pair in names.windows(2) {
        net.link(pair[0], pair[1], 1, 0);
        net.link(pair[0], pair[1], 1, 0);
    }
    assert_eq!(ipv4(&net, &names[..SegmentList::MAX]).len(), SegmentList::MAX);
    let graph = net.graph();
    let result = segments::minimal(&graph, net.id("r0"), &along(&graph, &names));
    assert_eq!(result, Err(segments::Error::TooLong(SegmentList::MAX + 1, SegmentList::MAX)));
}

/// The decapsulating SID of the last node on a path that can decapsulate and from which the IGP
/// alone follows the path.
fn endpoint(graph: &Graph, nodes: &[NodeId], arcs: &[ArcId]) -> Option<Sid> {
    let to = *nodes.last().unwrap();
    (0..nodes.len()).rev().find_map(|at| {
        let rest: BTreeSet<ArcId> = arcs[at..].iter().copied().collect();
        let sids = graph.node(nodes[at]).sids?;
        (forward(graph, nodes[at], to, &[]) == Some(rest)).then_some(sids.decap_ipv4)
    })
}

/// Returns true if any list of `length` SIDs before `last`, from all SIDs of the nodes on the path,
/// works.
fn some_list_works(
    graph: &Graph,
    (from, to): (NodeId, NodeId),
    (last, length): (Sid, usize),
    sids: &[Sid],
    wanted: &BTreeSet<ArcId>,
) -> bool {
    (0..sids.len().pow(length as u32)).any(|mut number| {
        let mut list = Vec::new();
        for _ in 0..length {
            list.push(sids[number % sids.len()]);
            number /= sids.len();
        }
        list.push(last);
        forward(graph, from, to, &list).as_ref() == Some(wanted)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn packets_follow_the_list_and_no_shorter_one(
        shape in shapes(6), pick in any::<prop::sample::Index>(), ends in any::<[u8; 2]>(),
    ) {
        let graph = shape.net().graph();
        let [from, to] = ends.map(|n| NodeId(u32::from(n) % graph.len() as u32));
        let paths = simple_paths(&graph, from, to);
        prop_assume!(!paths.is_empty());
        let arcs = pick.get(&paths);
        let wanted: BTreeSet<ArcId> = arcs.iter().copied().collect();
        let nodes: Vec<NodeId> =
            std::iter::once(from).chain(arcs.iter().map(|&id| graph.arc(id).to)).collect();
        // A SID off the path cannot be in a list, because packets would visit it.
        let sids: Vec<Sid> = graph
            .arcs()
            .filter(|(id, _)| wanted.contains(id))
            .filter_map(|(_, arc)| arc.end_x)
            .chain(nodes.iter().filter_map(|&id| Some(graph.node(id).sids?.end)))
            .collect();
        let bare = forward(&graph, from, to, &[]) == Some(wanted.clone());
        match segments::minimal(&graph, from, arcs) {
            Ok(lists) if lists.ipv4.0.is_empty() => prop_assert!(bare),
            Ok(lists) => {
                prop_assert!(!bare, "the IGP goes there by itself");
                let list = lists.ipv4.0;
                prop_assert_eq!(forward(&graph, from, to, &list), Some(wanted.clone()));
                let (last, before) = (*list.last().unwrap(), list.len() - 1);
                prop_assert_eq!(endpoint(&graph, &nodes, arcs), Some(last));
                for length in 0..before.min(3) {
                    let found =
                        some_list_works(&graph, (from, to), (last, length), &sids, &wanted);
                    prop_assert!(!found, "{} SIDs would do instead of {:?}", length + 1, list);
                }
            }
            Err(segments::Error::NotEncodable(_)) => {
                let last = endpoint(&graph, &nodes, arcs).unwrap();
                for length in 0..3 {
                    prop_assert!(!some_list_works(&graph, (from, to), (last, length), &sids, &wanted));
                }
            }
            Err(segments::Error::NoEgress(_)) => {
                prop_assert_eq!(endpoint(&graph, &nodes, arcs), None);
            }
            Err(segments::Error::TooLong(length, most)) => {
                prop_assert!(length > most && most == SegmentList::MAX);
            }
            Err(segments::Error::NotServed) => prop_assert!(false, "no functions"),
        }
    }
}
