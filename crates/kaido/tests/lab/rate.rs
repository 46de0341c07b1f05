//! Rates of links.

use std::io::{BufRead, BufReader};
use std::process::Child;

use testkit::{Kaido, Lab};

use crate::kaido;
use crate::topologies::{CHAIN, addresses, resolved};

/// TCP throughput from h1 to h2, at `address`, in payload bits per second.
pub(crate) fn tcp(lab: &Lab<'_>, address: &str, seconds: u32) -> f64 {
    // The server exits after one test.
    let mut server = lab.start("h2", &["iperf3", "-s", "-1", "--forceflush"]);
    wait_until_listening(&mut server);
    let text = lab.exec("h1", &format!("iperf3 -J -t {seconds} -c {address}"));
    server.wait().unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
}

fn wait_until_listening(server: &mut Child) {
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let said: Vec<String> =
        lines.map_while(Result::ok).take_while(|line| !line.contains("Server listening")).collect();
    assert!(said.len() < 5, "{said:?}");
}

/// Payload rate of full-sized TCP segments on a link of `layer2` Mbit/s: 1,448 of the 1,514 bytes
/// of each frame; acknowledgements use the other direction.
fn payload(layer2: f64) -> f64 {
    layer2 * 1e6 * 1448.0 / 1514.0
}

#[track_caller]
fn assert_within_a_tenth(measured: f64, rate: f64) {
    let expected = payload(rate);
    let ratio = measured / expected;
    assert!((0.9..=1.1).contains(&ratio), "{measured} bit/s at {rate} Mbit/s: {ratio:.3}");
}

/// A node's links, addresses and routes, without counters.
fn look(lab: &Lab<'_>, node: &str) -> Vec<String> {
    let mut seen = lab.routes(node);
    for command in ["ip -o link", "ip -o address"] {
        seen.extend(lab.exec(node, command).lines().map(str::to_owned));
    }
    seen
}

fn queues(lab: &Lab<'_>, node: &str) -> Vec<String> {
    lab.exec(node, "tc qdisc show").lines().map(str::to_owned).collect()
}

#[test]
fn root_a_rate_limits_and_changes_alone() {
    let kaido = kaido();
    let limited = CHAIN.replace("r1-r2, r2-r3", "r1-r2: {rate: 50mbit}, r2-r3: {rate: 1gbit}");
    assert_ne!(limited, CHAIN);
    let topology = resolved(&limited);
    let [address, _] = addresses(&topology, "h2");
    let lab = kaido.lab_up(&limited);
    assert_within_a_tenth(tcp(&lab, &address, 2), 50.0);

    let nodes = ["h1", "h2", "r1", "r2", "r3"];
    let (before, queues_before) =
        (nodes.map(|node| look(&lab, node)), nodes.map(|node| queues(&lab, node)));
    lab.link("r1-r2", &["set", "rate=20mbit"]);
    assert_eq!(nodes.map(|node| look(&lab, node)), before);
    for (node, queues_before) in nodes.iter().zip(queues_before) {
        let now = queues(&lab, node);
        let changed: Vec<_> = now.iter().filter(|line| !queues_before.contains(line)).collect();
        match *node {
            "r1" | "r2" => assert!(
                changed.len() == 1 && changed[0].contains("rate 20Mbit"),
                "{node}: {changed:#?}"
            ),
            _ => assert!(changed.is_empty(), "{node}: {changed:#?}"),
        }
    }
    assert_within_a_tenth(tcp(&lab, &address, 2), 20.0);
    // Reset, twice.
    for _ in 0..2 {
        lab.link("r1-r2", &["set", "rate=none"]);
        for node in ["r1", "r2"] {
            let left = queues(&lab, node);
            assert!(!left.iter().any(|line| line.contains("20Mbit")), "{node}: {left:#?}");
        }
    }
    assert!(tcp(&lab, &address, 1) > 100e6);
    let metrics = kaido.ok(&["lab", "metrics"]);
    let is_told = |line: &str| line.contains("configured_rate") && line.contains("\"r1-r2\"");
    assert!(!metrics.lines().any(is_told), "{metrics}");
}

#[test]
fn root_a_link_accepts_supported_settings_and_names_the_others() {
    let kaido: Kaido = kaido();
    let lab = kaido.lab_up(CHAIN);
    let before = queues(&lab, "r1");
    let set = |setting: &str| kaido.run(&["lab", "link", "r1-r2", "set", setting]);
    for setting in ["delay=10ms", "loss=1%", "jitter=1ms", "queue=10p"] {
        set(setting).failed(2, &["is a kernel link", "`engine: true`"]);
    }
    set("color=red").failed(2, &["`color` of a link cannot be changed"]);
    set("rate=fast").failed(2, &["rate"]);
    set("rate").failed(2, &["KEY=VALUE"]);
    set("rate=7bit").failed(2, &["at least 8bit", "7bit is less"]);
    // If one setting is invalid, none is applied.
    let both = kaido.run(&["lab", "link", "r1-r2", "set", "rate=10mbit", "delay=10ms"]);
    both.failed(2, &["is a kernel link"]);
    let one = kaido.run(&["lab", "link", "r1-r2", "set", "rate=10mbit", "--from", "r1"]);
    one.failed(2, &["whose rate applies to both directions: omit --from"]);
    kaido.run(&["lab", "link", "r1-r2", "down", "--silent"]).failed(2, &["`engine: true`"]);
    let links = kaido.ok(&["lab", "links"]);
    assert!(links.contains("no emulated links"), "{links}");
    assert_eq!(kaido.ok(&["--json", "lab", "links"]).trim(), "[]");
    assert_eq!(queues(&lab, "r1"), before);
}
