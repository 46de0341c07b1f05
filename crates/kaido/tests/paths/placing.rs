//! Placement of applications, and the bandwidth that remains for others.

use serde_json::{Value, json};
use std::time::Duration;
use testkit::{pause, until};

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, SHORT, SQUARE};

#[test]
fn root_a_low_latency_application_stays_with_the_igp() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    kaido.ok(&["app", "rm", "bulk"]);
    let add = ["app", "add", "voice", "--from", "h3", "--to", "h2", "--class", "low-latency"];
    let added = kaido.json(&add);
    assert_eq!((&added["path"], &added["state"]), (&json!(SHORT), &json!("admitted")));
    let load = network.send("h1", network.ipv4("h2").into(), 6000, 25.0);
    let voice = network.send("h3", network.ipv4("h2").into(), 5201, 1.0);
    let full = || (network.interface("r1", "r3")["congested"] == true).then_some(());
    until(TIMEOUT, full, || network.interface("r1", "r3").to_string());
    pause(Duration::from_secs(1));
    let app = network.show("voice");
    assert_eq!((&app["path"], &app["moves"]), (&json!(SHORT), &json!(0)));
    assert_eq!((&app["state"], &app["ipv4_segments"]), (&json!("admitted"), &json!([])));
    assert!(app["rate_bps"].as_u64() > Some(500_000), "it is counted all the same: {app}");
    assert_eq!(network.steering("h3"), [""; 0]);
    load.finish();
    voice.finish();
}

#[test]
fn root_an_application_that_fits_nowhere_names_the_link_that_limits_it() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    network.wait_until_idle();
    let add = |name: &str, demand: &str| {
        kaido.json(&["app", "add", name, "--from", "h3", "--to", "h2", "--demand", demand])
    };
    assert_eq!(add("first", "50mbit")["state"], "admitted");
    let second = add("second", "40mbit");
    assert_eq!(second["state"], "degraded");
    // 10 of 20 and 10 of 60 are available: of two equally wide paths the one with fewer hops is
    // used.
    assert_eq!(second["path"], json!(SHORT));
    assert_eq!(second["limit"], json!({ "interface": "r1:r3", "free_bps": 10_000_000 }));
    let text = kaido.ok(&["app", "show", "second"]);
    assert!(text.contains("r1:r3 has 10mbit free"), "{text}");
    let why = network.why("second");
    assert!(why["alternatives"].as_array().unwrap().iter().all(|one| one["covers"] == false));
}

#[test]
fn root_two_applications_share_no_link_that_carries_one() {
    let kaido = kaido();
    let network = Network::up(&kaido, SQUARE);
    network.wait_until_idle();
    let add = |name: &str| {
        kaido.json(&["app", "add", name, "--from", "h1", "--to", "h2", "--demand", "60mbit"])
    };
    let (one, two) = (add("one"), add("two"));
    assert_eq!((&one["state"], &two["state"]), (&json!("admitted"), &json!("admitted")));
    let over = |app: &Value| app["path"][2].as_str().unwrap().to_owned();
    let mut over_both = [over(&one), over(&two)];
    over_both.sort();
    assert_eq!(over_both, ["r2", "r3"]);
    for router in ["r2", "r3"] {
        assert_eq!(network.interface("r1", router)["reserved_bps"], 60_000_000);
    }
    let three = add("three");
    assert_eq!(three["state"], "degraded");
    assert_eq!(three["limit"]["free_bps"], 40_000_000);

    kaido.ok(&["app", "rm", "three"]);
    kaido.ok(&["app", "rm", "one"]);
    assert_eq!(network.interface("r1", &over(&one))["reserved_bps"], 0);
    let four = add("four");
    assert_eq!((&four["state"], over(&four)), (&json!("admitted"), over(&one)));
}
