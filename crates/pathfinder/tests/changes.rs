//! Applications that change, are restored from a store, or are removed: their paths and
//! reservations afterwards.
#![allow(clippy::unwrap_used)]

mod common;

use common::scenario::{APP, LONG, M, OTHER, SHORT, demo_world, path, port, reserved, secs, world};
use common::world::{STEP, demand};
use common::{Net, along, demo};
use model::{Class, Color};
use pathfinder::{Demand, Path, State, segments};

#[test]
fn a_low_latency_application_never_leaves_the_igps_path() {
    let (net, mut world) = demo_world();
    let low = Demand { class: Class::LowLatency, ..demand(&net, 7001, "h3", "h2", 10) };
    let lower = Demand { color: Color(7002), ..low.clone() };
    world.add(low);
    world.add(lower);
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    world.run(secs(60));
    assert_eq!(
        (path(&net, &world.decider, APP), path(&net, &world.decider, OTHER)),
        (LONG.into(), SHORT.into())
    );
    let status = world.decider.app(OTHER).unwrap();
    assert_eq!((status.state, status.moves), (State::Admitted, 0));
    assert_eq!(status.lists, segments::Lists::default());
    assert_eq!(world.decider.reservation(OTHER), 0);
    world.decider.remove(OTHER);
    world.decider.remove(Color(7002));
}

#[test]
fn an_application_that_becomes_low_latency_gives_everything_back() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    world.run(secs(5));
    let low = Demand { class: Class::LowLatency, ..demand(&net, 7000, "h3", "h2", 50) };
    world.decider.add(low, world.now);
    world.run(secs(1));
    let (_, last) = world.actions.last().unwrap();
    assert_eq!(last.lists, segments::Lists::default(), "its policy is removed");
    assert_eq!(path(&net, &world.decider, APP), SHORT);
    assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 0);
}

#[test]
fn a_low_latency_application_loses_the_list_that_a_store_remembers() {
    let net = demo();
    let graph = net.graph();
    let arcs = along(&graph, &["h3", "r1", "r3", "r5", "h2"]);
    let mut world = world(&net);
    let low = Demand { class: Class::LowLatency, ..demand(&net, 7000, "h3", "h2", 0) };
    world.add(low);
    let lists = segments::Lists {
        ipv4: srv6::SegmentList(vec![common::sid(7, 0xd4)]),
        ..Default::default()
    };
    world.decider.restore(APP, Path::over(&graph, net.id("h3"), &arcs), lists, 0);
    world.run(STEP);
    assert_eq!(world.actions.len(), 1);
    assert_eq!(world.actions[0].1.lists, segments::Lists::default());
}

#[test]
fn a_path_that_breaks_during_a_move_leaves_no_reservation_behind() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    while world.actions.is_empty() {
        world.step();
    }
    world.set_graph(net.without("r5"));
    world.run(STEP);
    assert_eq!(world.decider.app(APP).unwrap().state, State::Unreachable);
    for arc in &net.arcs {
        assert_eq!(world.decider.ledger().reserved(arc.port), 0);
    }
}

#[test]
fn another_amount_keeps_the_path_and_changes_the_reservation() {
    let (net, mut world) = demo_world();
    world.decider.add(demand(&net, 7000, "h3", "h2", 90), world.now);
    world.run(secs(1));
    assert_eq!(
        (reserved(&net, &world.decider, "r1", "r3"), path(&net, &world.decider, APP)),
        (90, SHORT.into())
    );
    assert_eq!(world.actions, []);
}

#[test]
fn another_destination_is_another_path() {
    let (net, mut world) = demo_world();
    world.decider.add(demand(&net, 7000, "h3", "r2", 50), world.now);
    world.run(secs(1));
    assert_eq!(path(&net, &world.decider, APP), "h3-r1-r2");
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 0);
    world.check_ledger();
}

#[test]
fn a_restored_placement_is_kept() {
    let net = demo();
    let graph = net.graph();
    let arcs = along(&graph, &["h3", "r1", "r2", "r4", "r5", "h2"]);
    let long = Path::over(&graph, net.id("h3"), &arcs);
    let lists = segments::minimal(&graph, net.id("h3"), &arcs).unwrap();
    let mut world = world(&net);
    world.add(demand(&net, 7000, "h3", "h2", 50));
    world.decider.restore(APP, long.clone(), lists, 50_000_000);
    world.run(secs(9));
    assert_eq!((world.actions.len(), path(&net, &world.decider, APP)), (0, LONG.into()));
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(reserved(&net, &world.decider, "r2", "r4"), 50);
    // A path with other ends is not restored, but its installed lists are replaced.
    world.add(demand(&net, 7001, "h1", "h2", 10));
    let lists = segments::minimal(&graph, net.id("h3"), &arcs).unwrap();
    world.decider.restore(OTHER, long, lists, 10_000_000);
    world.run(STEP);
    assert_eq!(path(&net, &world.decider, OTHER), "h1-r1-r3-r5-h2");
    assert_eq!(world.actions[0].1.color, OTHER);
}

#[test]
fn a_restored_degraded_application_takes_no_more_than_before() {
    let mut net = Net::new(&["h1", "r1", "r2", "h2"]);
    for (a, b, mbps) in [("h1", "r1", 0), ("r1", "r2", 100), ("r2", "h2", 0)] {
        net.link(a, b, 1, mbps);
    }
    let graph = net.graph();
    let only = Path::over(&graph, net.id("h1"), &along(&graph, &["h1", "r1", "r2", "h2"]));
    let mut world = world(&net);
    for (color, reserved) in [(7000, 80_000_000), (7001, 20_000_000)] {
        world.add(demand(&net, color, "h1", "h2", 80));
        world.decider.restore(Color(color), only.clone(), segments::Lists::default(), reserved);
    }
    for _ in 0..100 {
        world.step();
        assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 100);
        assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    }
    assert!(matches!(world.decider.app(OTHER).unwrap().state, State::Degraded { .. }));
}

#[test]
fn removal_releases_everything() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    while world.actions.is_empty() {
        world.step();
    }
    world.decider.remove(APP);
    for arc in &net.arcs {
        assert_eq!(world.decider.ledger().reserved(arc.port), 0);
    }
    assert!(world.decider.app(APP).is_none() && world.decider.explain(APP).is_none());
    assert_eq!(world.decider.evaluate(world.now), []);
}
