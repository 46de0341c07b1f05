//! N applications, constant demands, late reports: after a while nothing moves any more.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::shapes;
use common::world::{World, demand};
use model::Bandwidth;
use pathfinder::{Config, State};
use proptest::prelude::*;

/// The real proportions with shorter timers: minutes of simulation add many steps but no insight.
fn config() -> Config {
    Config {
        hold: Duration::from_secs(2),
        dwell: Duration::from_secs(6),
        memory: Duration::from_secs(60),
        ..Config::default()
    }
}

const BUSY: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_secs(40);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 30,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn constant_demands_come_to_rest(
        shape in shapes(6),
        wishes in prop::collection::vec((0..8usize, 0..8usize, 1..80u64), 1..10),
        // Per port: background in percent of its capacity, and its kind (inelastic or elastic).
        backgrounds in prop::collection::vec((0..120u32, 0..3u8), 24),
        late in prop::collection::vec(0..=10usize, 24),
        apps_late in 0..=10usize,
    ) {
        let net = shape.net();
        let mut world = World::new(&net, config());
        world.apps_late = apps_late;
        for arc in &net.arcs {
            let at = arc.port.0 as usize % 24;
            world.late.insert(arc.port, late[at]);
            let (percent, kind) = backgrounds[at];
            let bps = arc.capacity.map_or(0, Bandwidth::bps) as f64 * f64::from(percent) / 100.0;
            match kind {
                1 => drop(world.inelastic.insert(arc.port, bps)),
                2 => drop(world.elastic.insert(arc.port, bps)),
                _ => {}
            }
        }
        world.run(Duration::from_secs(2));
        let name = |at: usize| net.nodes[at % net.nodes.len()].name.as_str();
        for (color, &(from, to, mbps)) in (7000..).zip(&wishes) {
            world.add(demand(&net, color, name(from), name(to), mbps));
        }
        world.run(BUSY);
        let so_far = world.actions.len();
        world.run(QUIET);
        let after = &world.actions[so_far..];
        prop_assert!(after.is_empty(), "still moving: {after:?}");
        let moves: u32 = world.decider.apps().map(|status| status.moves).sum();
        prop_assert!(moves <= 4 * wishes.len() as u32, "{moves} moves of {}", wishes.len());
        world.check_ledger();
    }

    #[test]
    fn without_background_no_link_is_promised_twice(
        shape in shapes(6),
        wishes in prop::collection::vec((0..8usize, 0..8usize, 1..80u64), 1..16),
        late in prop::collection::vec(0..=10usize, 24),
    ) {
        let net = shape.net();
        let mut world = World::new(&net, config());
        for arc in &net.arcs {
            world.late.insert(arc.port, late[arc.port.0 as usize % 24]);
        }
        let name = |at: usize| net.nodes[at % net.nodes.len()].name.as_str();
        for (color, &(from, to, mbps)) in (7000..).zip(&wishes) {
            world.add(demand(&net, color, name(from), name(to), mbps));
            world.step();
        }
        for _ in 0..100 {
            world.step();
            for arc in &net.arcs {
                let Some(capacity) = arc.capacity.map(Bandwidth::bps) else { continue };
                // An application counts as covered with 5 % missing, but its full demand is
                // reserved.
                let slack = wishes.iter().map(|wish| wish.2).max().unwrap() * 50_000;
                let reserved = world.decider.ledger().reserved(arc.port);
                prop_assert!(reserved <= capacity + slack, "{reserved} of {capacity}");
            }
        }
        world.run(Duration::from_secs(5));
        world.check_ledger();
        for status in world.decider.apps() {
            prop_assert_ne!(status.state, State::Pending);
        }
    }
}
