//! Scenarios of the decider: events, and the resulting paths and reservations.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::scenario::{APP, LONG, M, OTHER, SHORT, demo_world, path, port, reserved, secs, world};
use common::world::{STEP, World, demand, noise};
use common::{Net, demo};
use model::Color;
use pathfinder::{AppLoad, Cause, Config, Decider, PortLoad, Stamps, State, segments};

#[test]
fn half_a_links_background_moves_nothing_in_five_minutes() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 50.0 * M);
    world.noise = noise(1, 0.05);
    world.apps_late = 1;
    world.run(secs(300));
    assert!(world.rate(APP) > 47.0 * M, "the application has what it asked for");
    assert_eq!(world.actions, []);
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(
        (reserved(&net, &world.decider, "r1", "r3"), path(&net, &world.decider, APP)),
        (50, SHORT.into())
    );
}

#[test]
fn a_full_link_is_left_within_400_ms_of_the_report() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    // The node averages over three samples. The first report of too little free bandwidth starts
    // the clock.
    let mut reported = None;
    let start = world.now;
    while world.actions.is_empty() && world.now < start + secs(2) {
        world.step();
        let load = world.decider.load(port(&net, "r1", "r3")).unwrap().rate_bps;
        let app = world.decider.app(APP).unwrap().load.rate_bps;
        if load - app > 53_000_000 && reported.is_none() {
            reported = Some(world.now);
        }
    }
    let (at, action) = &world.actions[0];
    assert!(*at <= reported.unwrap() + Duration::from_millis(400), "{at:?} after {reported:?}");
    let limit = port(&net, "r1", "r3");
    assert!(matches!(action.decision.cause, Cause::Violated { port, .. } if port == limit));
    assert_eq!(action.lists.ipv4.0.len(), 2);
    assert_eq!(path(&net, &world.decider, APP), LONG);
    world.run(secs(60));
    assert_eq!(world.actions.len(), 1, "and it stays there");
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 50);
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 0);
}

#[test]
fn a_merely_better_path_must_last_and_the_application_must_have_dwelt() {
    let (net, mut world) = demo_world();
    let short = port(&net, "r1", "r3");
    world.inelastic.insert(short, 100.0 * M);
    world.run(secs(1));
    assert_eq!(path(&net, &world.decider, APP), LONG);
    let left = world.last_action();
    // The short branch is empty again, except for a burst that restarts the ten seconds.
    world.inelastic.clear();
    world.run(secs(21));
    world.inelastic.insert(short, 100.0 * M);
    world.run(secs(4));
    world.inelastic.clear();
    let better = world.now;
    world.run(secs(9));
    assert_eq!(world.actions.len(), 1, "30 s are over, 10 s are not");
    world.run(secs(3));
    let (at, action) = world.actions[1].clone();
    assert_eq!(
        (action.decision.cause, path(&net, &world.decider, APP)),
        (Cause::Better, SHORT.into())
    );
    assert!(at >= better + secs(10) && at >= left + secs(30));
    // The second escape doubles the dwell time.
    world.inelastic.insert(short, 100.0 * M);
    world.run(secs(2));
    assert_eq!(world.actions.len(), 3);
    world.inelastic.clear();
    let away = world.last_action();
    world.run(secs(130));
    assert_eq!(world.actions.len(), 4);
    assert!(world.last_action() >= away + secs(120), "after three moves four times 30 s");
    world.check_ledger();
}

#[test]
fn degraded_names_the_limiting_port() {
    let net = demo();
    let mut world = world(&net);
    world.inelastic.insert(port(&net, "r1", "r3"), 80.0 * M);
    world.inelastic.insert(port(&net, "r2", "r4"), 400.0 * M);
    world.run(secs(1));
    world.add(demand(&net, 7000, "h3", "h2", 200));
    world.run(STEP);
    let status = world.decider.app(APP).unwrap();
    let limit = port(&net, "r2", "r4");
    assert_eq!(status.state, State::Degraded { limit, free_bps: 100_000_000 });
    assert_eq!(path(&net, &world.decider, APP), LONG);
    assert_eq!(reserved(&net, &world.decider, "r2", "r4"), 100, "no more than there is");
    world.inelastic.clear();
    world.run(secs(2));
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(reserved(&net, &world.decider, "r2", "r4"), 200);
}

#[test]
fn a_degraded_application_goes_where_more_is_free_in_its_own_time() {
    let net = demo();
    let mut world = world(&net);
    world.inelastic.insert(port(&net, "r2", "r4"), 420.0 * M);
    world.run(secs(1));
    world.add(demand(&net, 7000, "h3", "h2", 200));
    world.run(secs(5));
    assert_eq!(path(&net, &world.decider, APP), SHORT, "100 here, 80 there");
    world.inelastic.insert(port(&net, "r2", "r4"), 380.0 * M);
    world.run(secs(60));
    assert_eq!(world.actions, [], "120 there: not a tenth of its demand more");
    world.inelastic.insert(port(&net, "r2", "r4"), 370.0 * M);
    world.run(secs(9));
    assert_eq!(world.actions, [], "not before it has lasted");
    world.run(secs(3));
    assert_eq!(path(&net, &world.decider, APP), LONG, "100 here, 130 there");
    let limit = port(&net, "r2", "r4");
    assert!(
        matches!(world.decider.app(APP).unwrap().state, State::Degraded { limit: at, .. } if at == limit)
    );
    world.run(secs(120));
    assert_eq!(world.actions.len(), 1);
}

#[test]
fn an_unreachable_application_holds_nothing_and_returns() {
    let (net, mut world) = demo_world();
    world.set_graph(net.without("r5"));
    world.run(STEP);
    assert_eq!(world.decider.app(APP).unwrap().state, State::Unreachable);
    assert_eq!(world.decider.reservation(APP), 0);
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 0);
    world.set_graph(net.graph());
    world.run(secs(1));
    assert_eq!(world.decider.app(APP).unwrap().state, State::Admitted);
    assert_eq!(
        (reserved(&net, &world.decider, "r1", "r3"), path(&net, &world.decider, APP)),
        (50, SHORT.into())
    );
}

#[test]
fn a_dead_node_moves_the_applications_over_it_and_no_others() {
    let net = demo();
    let mut world = world(&net);
    for color in 7000..7005 {
        world.add(demand(&net, color, "h3", "h2", 19));
    }
    world.add(demand(&net, 7005, "h3", "h2", 200));
    world.run(secs(2));
    let long = Color(7005);
    assert_eq!(path(&net, &world.decider, long), LONG);
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 95);
    world.set_graph(net.without("r3"));
    world.run(STEP);
    for color in (7000..7005).map(Color) {
        assert_eq!(path(&net, &world.decider, color), LONG);
        assert_eq!(world.decider.app(color).unwrap().moves, 1);
    }
    assert_eq!(world.decider.app(long).unwrap().moves, 0);
    world.run(secs(2));
    assert_eq!(reserved(&net, &world.decider, "r2", "r4"), 295);
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 0);
    // Without r3, the IGP itself takes the long path: no list is needed any more.
    assert_eq!(world.decider.app(long).unwrap().lists, segments::Lists::default());
}

#[test]
fn a_rerouted_application_without_a_list_is_judged_again() {
    // On the IGP's path before and after: nothing is installed, so nothing is confirmed.
    let (net, mut world) = demo_world();
    world.set_graph(net.without("r3"));
    world.run(secs(2));
    assert_eq!((path(&net, &world.decider, APP), world.actions.len()), (LONG.into(), 0));
    world.check_ledger();
    world.set_graph(net.graph());
    world.inelastic.insert(port(&net, "r2", "r4"), 480.0 * M);
    world.run(secs(2));
    assert_eq!(path(&net, &world.decider, APP), SHORT);
}

#[test]
fn two_applications_that_do_not_fit_one_link_go_apart() {
    let mut net = Net::new(&["h1", "h2", "r1", "r2", "r3", "r4"]);
    net.link("h1", "r1", 1, 0);
    net.link("h2", "r4", 1, 0);
    for via in ["r2", "r3"] {
        net.link("r1", via, 1, 100);
        net.link(via, "r4", 1, 100);
    }
    let mut world = world(&net);
    world.add(demand(&net, 7000, "h1", "h2", 60));
    world.add(demand(&net, 7001, "h1", "h2", 60));
    world.run(secs(60));
    let paths = [APP, OTHER].map(|color| path(&net, &world.decider, color));
    assert_ne!(paths[0], paths[1]);
    assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 60);
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 60);
    assert_eq!(world.actions.len(), 2, "one each, as equal paths are ambiguous");
}

#[test]
fn a_moving_application_counts_on_both_paths_until_it_has_settled() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    while world.actions.is_empty() {
        world.step();
    }
    let both = |world: &World| {
        (reserved(&net, &world.decider, "r1", "r3"), reserved(&net, &world.decider, "r1", "r2"))
    };
    assert_eq!(both(&world), (50, 50));
    assert_eq!(reserved(&net, &world.decider, "h3", "r1"), 50, "once where the paths meet");
    world.run(Duration::from_millis(500));
    assert_eq!(both(&world), (50, 50), "confirmed, but the samples have not shown it for long");
    world.run(Duration::from_millis(200));
    assert_eq!(both(&world), (0, 50));
}

#[test]
fn a_newcomer_does_not_take_the_room_of_one_that_is_still_moving() {
    // Two paths of three hops, with 50 of background on the one that the first application moves
    // to.
    let mut net = Net::new(&["h1", "h2", "r1", "r2", "r3", "r4", "r5"]);
    net.link("h1", "r1", 1, 0);
    net.link("h2", "r4", 1, 0);
    for via in ["r2", "r3", "r5"] {
        net.link("r1", via, if via == "r2" { 1 } else { 2 }, 100);
        net.link(via, "r4", if via == "r5" { 9 } else { 1 }, 100);
    }
    let mut world = world(&net);
    world.inelastic.insert(port(&net, "r1", "r3"), 50.0 * M);
    world.late.insert(port(&net, "r1", "r3"), 5);
    world.add(demand(&net, 7000, "h1", "h2", 45));
    world.run(secs(2));
    assert_eq!(path(&net, &world.decider, APP), "h1-r1-r2-r4-h2");
    world.inelastic.insert(port(&net, "r1", "r2"), 100.0 * M);
    while world.actions.is_empty() {
        world.step();
    }
    assert_eq!(path(&net, &world.decider, APP), "h1-r1-r3-r4-h2");
    // The application is moving and its packets are in no report yet: 50 + 45 must count as used.
    world.step();
    world.add(demand(&net, 7001, "h1", "h2", 45));
    world.run(STEP);
    assert_eq!(path(&net, &world.decider, OTHER), "h1-r1-r5-r4-h2");
}

#[test]
fn an_application_that_leaves_a_narrow_path_displaces_no_other() {
    let net = demo();
    let mut world = world(&net);
    world.inelastic.insert(port(&net, "r2", "r4"), 480.0 * M);
    world.run(secs(1));
    world.add(demand(&net, 7000, "h3", "h2", 60));
    world.add(demand(&net, 7001, "h3", "h2", 60));
    world.run(secs(2));
    assert_eq!(world.decider.reservation(OTHER) / 1_000_000, 40, "what the first one leaves");
    world.inelastic.clear();
    while world.actions.is_empty() {
        world.step();
    }
    assert_eq!(reserved(&net, &world.decider, "r1", "r3"), 100, "60 and 40, until it has settled");
    assert_eq!(reserved(&net, &world.decider, "r1", "r2"), 60);
    world.run(secs(30));
    assert_eq!(
        (path(&net, &world.decider, APP), path(&net, &world.decider, OTHER)),
        (SHORT.into(), LONG.into())
    );
    assert_eq!(world.actions.len(), 1);
}

/// A congested port with rate `rate`, and an application that gets `app` of it.
fn starve(net: &Net, decider: &mut Decider, rate: f64, app: f64) {
    let load = PortLoad { rate_bps: (rate * M) as u64, congested: true, ..PortLoad::default() };
    decider.report_port(port(net, "r1", "r3"), load);
    decider.report_app(APP, AppLoad { rate_bps: (app * M) as u64, ..AppLoad::default() });
}

#[test]
fn a_starving_application_leaves_although_the_counters_leave_room() {
    let net = demo();
    let mut decider = Decider::new(Config::default());
    decider.set_graph(net.graph());
    decider.add(demand(&net, 7000, "h3", "h2", 50), Duration::ZERO);
    decider.evaluate(Duration::ZERO);
    // 85 of 100 are in use, 35 of them by the application: by the counters, 50 are free for it.
    starve(&net, &mut decider, 85.0, 35.0);
    assert_eq!(decider.evaluate(secs(1)), []);
    assert_eq!(decider.wakeup(), Some(secs(3)));
    assert_eq!(decider.evaluate(Duration::from_millis(2900)), []);
    let actions = decider.evaluate(secs(3));
    assert_eq!((actions.len(), path(&net, &decider, APP)), (1, LONG.into()));
    let limit = port(&net, "r1", "r3");
    assert_eq!(actions[0].decision.cause, Cause::Violated { port: limit, free_bps: 35_000_000 });
}

#[test]
fn a_congested_link_with_a_served_application_is_not_left() {
    let net = demo();
    let mut decider = Decider::new(Config::default());
    decider.set_graph(net.graph());
    decider.add(demand(&net, 7000, "h3", "h2", 50), Duration::ZERO);
    decider.evaluate(Duration::ZERO);
    for tenth in 0..600 {
        starve(&net, &mut decider, 94.0, 47.0);
        assert_eq!(decider.evaluate(STEP * tenth), []);
    }
}

#[test]
fn few_move_at_a_time_and_the_rest_soon_after() {
    let net = demo();
    let mut decider = Decider::new(Config { moves_a_round: 2, ..Config::default() });
    decider.set_graph(net.graph());
    for color in 7000..7005 {
        decider.add(demand(&net, color, "h3", "h2", 110), Duration::ZERO);
    }
    // Four fit on the long branch; the fifth is degraded on the short one.
    let mut now = Duration::ZERO;
    let mut rounds = Vec::new();
    loop {
        rounds.push(decider.evaluate(now).len());
        match decider.wakeup() {
            Some(at) if at < now + secs(1) => now = at,
            _ => break,
        }
    }
    assert_eq!(rounds, [2, 2, 0]);
    assert_eq!(
        (reserved(&net, &decider, "r1", "r2"), reserved(&net, &decider, "r1", "r3")),
        (440, 100)
    );
}

#[test]
fn an_explanation_names_the_defect_of_every_other_path() {
    let (net, mut world) = demo_world();
    world.inelastic.insert(port(&net, "r1", "r3"), 100.0 * M);
    world.run(secs(5));
    let why = world.decider.explain(APP).unwrap();
    assert_eq!(why.alternatives.len(), 2);
    let (short, long) = (&why.alternatives[0], &why.alternatives[1]);
    assert_eq!((short.verdict.clone(), short.chosen), (pathfinder::Verdict::TooLittle, false));
    assert_eq!(short.limit.unwrap().0, port(&net, "r1", "r3"));
    assert_eq!((long.verdict.clone(), long.chosen), (pathfinder::Verdict::Covers, true));
    assert_eq!(why.lists.ipv4.0.len(), 2);
    assert!(why.installed.is_some());
    assert!(matches!(why.decision.unwrap().cause, Cause::Violated { .. }));
}

#[test]
fn a_decision_names_the_first_sample_that_showed_the_violation() {
    let net = demo();
    let limit = port(&net, "r1", "r3");
    let mut decider = Decider::new(Config::default());
    decider.set_graph(net.graph());
    decider.add(demand(&net, 7000, "h3", "h2", 50), Duration::ZERO);
    decider.evaluate(Duration::ZERO);
    let stamps = |at| Stamps { sampled_at_ns: at, received_at_ns: at + 1 };
    let link = |at| PortLoad { rate_bps: 100_000_000, stamps: stamps(at), ..PortLoad::default() };
    let app = |mbps: u64, at| AppLoad { rate_bps: mbps * 1_000_000, stamps: stamps(at) };
    // The link is full, first with the application's own packets, then with other traffic: its rate
    // stays the same.
    decider.report_port(limit, link(100));
    decider.report_app(APP, app(95, 100));
    assert_eq!(decider.evaluate(secs(1)), []);
    decider.report_app(APP, app(5, 200));
    assert_eq!(decider.evaluate(secs(2)), []);
    decider.report_port(limit, link(300));
    decider.report_app(APP, app(4, 300));
    let actions = decider.evaluate(secs(3));
    assert_eq!(actions[0].decision.evidence, stamps(200));
}

#[test]
fn around_a_silent_node_packets_are_led_since_the_igp_may_still_go_over_it() {
    let (net, mut world) = demo_world();
    world.set_graph(net.silent("r3"));
    world.run(STEP);
    assert_eq!(path(&net, &world.decider, APP), LONG);
    let lists = world.decider.app(APP).unwrap().lists;
    assert_eq!(lists.ipv4.0.len(), 2, "the IGP's own way is the short one: {lists:?}");
}
