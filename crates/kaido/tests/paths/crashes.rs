//! Daemons that are killed.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Said, pause, until};

use crate::monitor::Monitor;
use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG, with_xdp};

/// Factor by which a busy machine may exceed time limits.
const SLACK: u32 = 3;

/// Steers the network's application into the long branch. The load that caused the move continues:
/// without it, moving back would eventually be right.
fn steered(network: &Network<'_>) -> testkit::Datagrams {
    network.find_neighbors();
    let load = network.send("h1", network.ipv4("h2").into(), 6000, 22.0);
    network.until_path("bulk", TIMEOUT, &LONG);
    let installed = || (network.steering("h3").len() >= 4).then_some(());
    until(TIMEOUT, installed, || format!("{:?}", network.steering("h3")));
    load
}

#[test]
fn root_a_killed_controller_loses_and_moves_nothing() {
    loses_and_moves_nothing(BRANCHES);
}

#[test]
fn root_a_killed_controller_of_routers_with_xdp_loses_and_moves_nothing() {
    loses_and_moves_nothing(&with_xdp(BRANCHES));
}

fn loses_and_moves_nothing(text: &str) {
    let kaido = kaido();
    let network = Network::up(&kaido, text);
    let load = steered(&network);
    let bulk = network.send("h3", network.ipv4("h2").into(), 5201, 8.0);
    let steering = network.steering("h3");
    let monitor = Monitor::start(&network, "h3");
    let before = network.show("bulk");

    network.kill("controller");
    kaido.run(&["app", "ls"]).failed(1, &["no controller answers", "`kaido lab start controller`"]);
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("the controller exited") && said.contains("degraded"), "{said}");
    pause(Duration::from_secs(1));
    let started = Instant::now();
    network.start_daemon("controller");
    network.wait_until_complete();
    let after = started.elapsed();
    println!("the controller had resumed after {after:?}");
    assert!(after < SLACK * Duration::from_secs(2), "{after:?}");
    // Enough time for a decision on current measurements.
    pause(Duration::from_secs(2));

    let now = network.show("bulk");
    for key in ["path", "state", "color", "ipv4_segments", "ipv6_segments"] {
        assert_eq!(now[key], before[key], "{key}");
    }
    assert!(now["moves"].as_u64() <= before["moves"].as_u64(), "{now}");
    assert_eq!(network.steering("h3"), steering);
    assert_eq!(monitor.finish(), [""; 0]);
    let count = bulk.finish();
    assert!(count.sent > 1000, "{count:?}");
    count.assert_whole("with the controller gone");
    load.finish();
}

#[test]
fn root_a_controller_that_is_killed_keeps_an_application_on_the_igps_path() {
    let kaido = kaido();
    // The application itself fills more than half of the link: if the controller counted its
    // packets as background traffic, it would move.
    let network = Network::up(&kaido, &BRANCHES.replace("demand: 10mbit", "demand: 15mbit"));
    let bulk = network.send("h3", network.ipv4("h2").into(), 5201, 14.0);
    let rate = |app: &serde_json::Value| app["rate_bps"].as_u64().unwrap();
    network.until_app("bulk", TIMEOUT, |app| rate(app) > 12_000_000);
    let before = network.show("bulk");
    network.kill("controller");
    network.start_daemon("controller");
    network.wait_until_complete();
    network.until_app("bulk", TIMEOUT, |app| rate(app) > 12_000_000);
    pause(Duration::from_secs(1));
    let now = network.show("bulk");
    assert_eq!((&now["path"], &now["moves"]), (&before["path"], &json!(0)));
    assert_eq!(network.steering("h3"), [""; 0]);
    bulk.finish();
}

#[test]
fn root_a_dead_node_leaves_the_graph_and_comes_back() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let load = steered(&network);
    let killed = Instant::now();
    network.kill("r4");
    let dead = || (!network.alive().contains(&"r4".to_owned())).then_some(());
    until(SLACK * Duration::from_secs(3), dead, || "r4 is still alive".into());
    let marked = killed.elapsed();
    println!("r4 was marked dead after {marked:?}");
    assert!(marked < SLACK * Duration::from_secs(3));
    let said = kaido.ok(&["lab", "ls"]);
    assert!(said.contains("the agent of r4 exited"), "{said}");
    // If the directory is accessed by another path, other agents are not reported.
    let other = kaido.directory().join("other");
    std::os::unix::fs::symlink(kaido.run_directory(), &other).unwrap();
    let said = Said::run(kaido.command(&["lab", "ls"]).env("KAIDO_RUN", &other)).ok();
    assert_eq!(said.matches("exited").count(), 1, "{said}");
    // The other path is too narrow, but exists.
    let (_, app) = network.until_path("bulk", TIMEOUT, &crate::topologies::SHORT);
    assert_eq!(app["state"], "degraded");
    assert!(app["limit"]["interface"].as_str().unwrap().starts_with('r'), "{app}");
    let moves = app["moves"].as_u64().unwrap();

    network.start_daemon("r4");
    network.wait_until_complete();
    // The demand is covered there again: this is a violation, so it moves back immediately, and
    // stays.
    let (_, app) = network.until_path("bulk", TIMEOUT, &LONG);
    assert_eq!((&app["state"], app["moves"].as_u64()), (&json!("admitted"), Some(moves + 1)));
    pause(Duration::from_secs(3));
    assert_eq!(network.show("bulk")["moves"], moves + 1);
    assert_eq!(network.alive().len(), 8);
    load.finish();
}

#[test]
fn root_a_headend_that_starts_again_finds_its_own_routes() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let load = steered(&network);
    let bulk = network.send("h3", network.ipv4("h2").into(), 5201, 8.0);
    let rate = |app: &serde_json::Value| app["rate_bps"].as_u64().unwrap();
    network.until_app("bulk", TIMEOUT, |app| rate(app) > 6_000_000);
    let steering = network.steering("h3");
    let before = network.show("bulk");
    let monitor = Monitor::start(&network, "h3");

    network.kill("h3");
    let dead = || (!network.alive().contains(&"h3".to_owned())).then_some(());
    until(TIMEOUT, dead, || "h3 is still alive".into());
    assert_eq!(network.steering("h3"), steering);
    network.start_daemon("h3");
    network.wait_until_complete();
    network.until_app("bulk", TIMEOUT, |app| app["state"] == "admitted" && rate(app) > 6_000_000);
    pause(Duration::from_secs(1));

    let now = network.show("bulk");
    for key in ["path", "color", "moves", "ipv4_segments", "ipv6_segments", "error"] {
        assert_eq!(now[key], before[key], "{key}");
    }
    assert_eq!(network.steering("h3"), steering);
    assert_eq!(monitor.finish(), [""; 0]);
    let count = bulk.finish();
    count.assert_whole("with the agent gone");
    load.finish();
}
