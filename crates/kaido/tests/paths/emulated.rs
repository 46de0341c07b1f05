//! Emulated links affect decisions like other links: rate, drops and backlog come from the
//! emulator, since the kernel does not count them.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG, SHORT};

/// The same network, with emulated links instead of those with a rate.
fn emulated() -> String {
    let links = |rate: &str| format!("{{rate: {rate}, delay: 2ms}}");
    let replaced =
        |text: String, rate: &str| text.replace(&format!("{{rate: {rate}}}"), &links(rate));
    ["20mbit", "60mbit"].into_iter().fold(BRANCHES.to_owned(), replaced)
}

fn wait(network: &Network<'_>, is_so: impl Fn(&Value) -> bool) -> Value {
    let look = || network.interface("r1", "r3");
    let found = || Some(look()).filter(|found| is_so(found));
    testkit::until(TIMEOUT, found, || look().to_string())
}

#[test]
fn root_cross_traffic_drives_an_application_away() {
    let kaido = kaido();
    let network = Network::up(&kaido, &emulated());
    assert_eq!(network.show("bulk")["path"], json!(SHORT));
    let sink = IpAddr::from(network.ipv4("h2"));
    let bulk = network.send("h3", sink, 5201, 8.0);
    network.until_app("bulk", TIMEOUT, |app| app["rate_bps"].as_u64().unwrap() > 6_000_000);
    // 8 Mbit/s of 20; the kernel's counters and the emulator's agree.
    let load = wait(&network, |load| load["rate_bps"].as_u64().unwrap() > 6_000_000);
    assert_eq!((&load["capacity_bps"], &load["congested"]), (&json!(20_000_000), &json!(false)));
    // No interface counts these packets.
    let traffic = ["lab", "traffic", "r1-r3", "--from", "r1", "rate=22mbit", "for=60s"];
    kaido.ok(&traffic);
    let (after, app) = network.until_path("bulk", TIMEOUT, &LONG);
    println!("moved {after:?} after the link began to fill");
    assert_eq!((&app["state"], &app["moves"]), (&json!("admitted"), &json!(1)));
    // The queue drops packets, and the throughput does not exceed the rate.
    let load = wait(&network, |load| load["loss"].as_f64().unwrap() > 0.01);
    let rate = load["rate_bps"].as_u64().unwrap();
    assert!((15_000_000..21_000_000).contains(&rate), "{load}");
    wait(&network, |load| load["congested"] == true && load["backlog_bytes"].as_u64() > Some(0));
    assert!(bulk.finish().received > 0);
}

#[test]
fn root_a_changed_rate_is_known_and_losses_on_the_path_are_not_congestion() {
    let kaido = kaido();
    let network = Network::up(&kaido, &emulated());
    kaido.ok(&["lab", "link", "r1-r3", "set", "rate=5mbit", "--from", "r1"]);
    // 10 Mbit/s do not fit any more.
    network.until_path("bulk", TIMEOUT, &LONG);
    wait(&network, |load| load["capacity_bps"] == 5_000_000);
    kaido.ok(&["lab", "link", "r1-r3", "set", "rate=20mbit", "loss=50%", "--from", "r1"]);
    wait(&network, |load| load["capacity_bps"] == 20_000_000);
    let other = network.send("h1", IpAddr::from(network.ipv4("h2")), 6000, 4.0);
    let rate = |load: &Value| load["rate_bps"].as_u64().unwrap();
    let load =
        wait(&network, |load| load["loss"].as_f64().unwrap() > 0.3 && rate(load) > 1_000_000);
    assert_eq!(load["congested"], false, "{load}");
    // Lost packets do not count as load.
    assert!(rate(&load) < 3_500_000, "{load}");
    other.finish();
    // A new emulator starts with zero counters and the file's rates.
    network.kill("emulator");
    wait(&network, |load| load["up"] == false);
    kaido.ok(&["lab", "start", "--lab", network.name(), "emulator"]);
    wait(&network, |load| load["up"] == true && load["loss"] == 0.0);
    assert_eq!(network.interface("r1", "r3")["capacity_bps"], 20_000_000);
}
