//! Links that fail or change, and nodes that are stopped temporarily.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;
use testkit::{pause, until};

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG, SHORT, SQUARE, with_xdp};

#[test]
fn root_an_application_leaves_a_link_that_goes_down() {
    let kaido = kaido();
    let network = Network::up(&kaido, SQUARE);
    network.find_neighbors();
    let add = |name: &str| {
        kaido.json(&["app", "add", name, "--from", "h1", "--to", "h2", "--demand", "60mbit"])
    };
    // The first one uses the IGP's path, so that the second one is steered into the other path.
    add("one");
    let before = add("two");
    assert_ne!(before["ipv4_segments"], json!([]));
    network.until_app("two", TIMEOUT, |_| network.steering("h1").len() >= 4);
    kaido.ok(&["app", "rm", "one"]);
    let by = before["path"][2].as_str().unwrap();
    network.link(&format!("r1-{by}"), &["down"]);
    let elsewhere = |app: &serde_json::Value| app["path"] != before["path"];
    let (after, app) = network.until_app("two", Duration::from_secs(3), elsewhere);
    println!("moved {after:?} after the link went down");
    assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(1)));
    // Either end may report it first.
    let down = || (network.interface("r1", by)["up"] == false).then_some(());
    until(TIMEOUT, down, || "the link is still up".into());
    let left = || network.steering("h1").is_empty().then_some(());
    until(TIMEOUT, left, || format!("{:?}", network.steering("h1")));
    let datagrams = network.send("h1", network.ipv4("h2").into(), 5201, 8.0);
    pause(Duration::from_millis(300));
    let count = datagrams.finish();
    assert_eq!(count.received, count.sent);
    assert!(count.sent > 50, "{count:?}");

    network.link(&format!("r1-{by}"), &["up"]);
    let up = || (network.interface("r1", by)["up"] == true).then_some(());
    until(TIMEOUT, up, || "the link is still down".into());
    pause(Duration::from_secs(3));
    let now = network.show("two");
    assert_eq!((&now["path"], &now["moves"]), (&app["path"], &json!(1)), "nothing drives it back");
}

#[test]
fn root_with_an_igp_an_application_without_a_list_follows_it_around_a_dead_link() {
    let kaido = kaido();
    let file = format!("{}/../../labs/paper-path.yaml", env!("CARGO_MANIFEST_DIR"));
    let network = Network::up(&kaido, &std::fs::read_to_string(file).unwrap());
    assert_eq!(network.show("bulk")["path"], json!(SHORT));
    network.link("r3-r5", &["down"]);
    let (after, app) = network.until_path("bulk", Duration::from_secs(3), &LONG);
    println!("moved {after:?} after the link went down");
    assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(1)));
    let sink = network.ipv4("h2");
    let reaches = || {
        let ping = ["ping", "-n", "-c", "1", "-W", "1", &sink.to_string()];
        network.run("h3", &ping).code.filter(|code| *code == 0)
    };
    until(TIMEOUT, reaches, || network.exec("r1", "ip route"));
    let before = network.sent("r4", "r5");
    let bulk = network.send("h3", sink.into(), 5201, 8.0);
    pause(Duration::from_millis(300));
    let count = bulk.finish();
    assert_eq!(count.received, count.sent);
    assert!(network.sent("r4", "r5") - before >= count.sent, "{count:?}");
}

#[test]
fn root_a_link_that_is_narrowed_is_seen_and_left() {
    narrowed_is_left(BRANCHES);
}

#[test]
fn root_a_link_of_routers_with_xdp_that_is_narrowed_is_seen_and_left() {
    narrowed_is_left(&with_xdp(BRANCHES));
}

fn narrowed_is_left(text: &str) {
    let kaido = kaido();
    let network = Network::up(&kaido, text);
    assert_eq!(network.interface("r1", "r3")["capacity_bps"], 20_000_000);
    network.link("r1-r3", &["set", "rate=15mbit"]);
    let narrowed = |to: u64| {
        let seen = || (network.interface("r1", "r3")["capacity_bps"] == to).then_some(());
        until(TIMEOUT, seen, || network.interface("r1", "r3").to_string());
    };
    narrowed(15_000_000);
    pause(Duration::from_millis(500));
    assert_eq!(network.show("bulk")["path"], json!(SHORT), "it still fits");
    network.link("r1-r3", &["set", "rate=5mbit"]);
    narrowed(5_000_000);
    let (_, app) = network.until_path("bulk", TIMEOUT, &LONG);
    assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(1)));

    // A restarted controller receives the current rate, not the rate in the file.
    network.kill("controller");
    network.start_daemon("controller");
    network.wait_until_complete();
    pause(Duration::from_millis(500));
    assert_eq!(network.interface("r1", "r3")["capacity_bps"], 5_000_000);
    let app = network.show("bulk");
    assert_eq!((&app["path"], &app["moves"]), (&json!(LONG), &json!(1)));
}

#[test]
fn root_a_node_that_was_stopped_for_a_while_comes_back() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    kaido.ok(&["app", "add", "big", "--from", "h3", "--to", "h2", "--demand", "30mbit"]);
    network.until_app("big", TIMEOUT, |_| network.steering("h3").len() >= 4);
    let steering = network.steering("h3");
    network.signal("h3", Signal::SIGSTOP);
    let dead = || (!network.alive().contains(&"h3".to_owned())).then_some(());
    until(TIMEOUT, dead, || "h3 is still alive".into());
    network.signal("h3", Signal::SIGCONT);
    network.wait_until_complete();
    let (_, app) = network.until_path("big", TIMEOUT, &LONG);
    assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(0)));
    assert_eq!(network.steering("h3"), steering);
}

#[test]
fn root_a_controller_that_was_suspended_keeps_its_nodes() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    let before = network.log("controller");
    network.signal("controller", Signal::SIGSTOP);
    pause(Duration::from_secs(4));
    network.signal("controller", Signal::SIGCONT);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        assert_eq!(network.alive().len(), 8);
    }
    let log = network.log("controller");
    assert!(!log[before.len()..].contains("silent"), "{log}");
}
