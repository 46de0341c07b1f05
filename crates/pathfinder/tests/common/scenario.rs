//! Helpers shared by the decider's scenarios.

use std::time::Duration;

use model::Color;
use pathfinder::{Config, Decider, PortId};

use super::world::{World, demand};
use super::{Net, demo};

pub const M: f64 = 1e6;
pub const APP: Color = Color(7000);
pub const OTHER: Color = Color(7001);

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub fn world(net: &Net) -> World {
    World::new(net, Config::default())
}

/// The node names on an application's path.
pub fn path(net: &Net, decider: &Decider, color: Color) -> String {
    let Some(path) = decider.app(color).unwrap().path else { return String::new() };
    let names: Vec<&str> = path.nodes().map(|node| net.nodes[node.index()].name.as_str()).collect();
    names.join("-")
}

/// The port of the first link from one node to another.
pub fn port(net: &Net, from: &str, to: &str) -> PortId {
    let (from, to) = (net.id(from), net.id(to));
    net.arcs.iter().find(|arc| arc.from == from && arc.to == to).unwrap().port
}

pub fn reserved(net: &Net, decider: &Decider, from: &str, to: &str) -> u64 {
    decider.ledger().reserved(port(net, from, to)) / 1_000_000
}

pub const SHORT: &str = "h3-r1-r3-r5-h2";
pub const LONG: &str = "h3-r1-r2-r4-r5-h2";

/// The demo network with its application on the short branch, with a demand of 50 out of 100
/// Mbit/s.
pub fn demo_world() -> (Net, World) {
    let net = demo();
    let mut world = world(&net);
    world.add(demand(&net, 7000, "h3", "h2", 50));
    world.make_elastic(APP, 1000.0 * M);
    world.run(secs(2));
    assert_eq!(path(&net, &world.decider, APP), SHORT);
    (net, world)
}
