//! A host's count of an application's packets equals that of its routers.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use testkit::pause;

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, with_xdp};

#[test]
fn root_the_meter_and_a_routers_counters_agree_on_tcp_with_gso() {
    agree(BRANCHES, ["r1", "r2"]);
}

/// r4 is the first router on the path with a SID in the segment list.
#[test]
fn root_the_meter_and_the_counters_of_a_router_with_xdp_agree() {
    agree(&with_xdp(BRANCHES), ["r4", "r5"]);
}

fn agree(text: &str, [router, next]: [&str; 2]) {
    let kaido = kaido();
    let network = Network::up(&kaido, text);
    kaido.ok(&["app", "add", "big", "--from", "h3", "--to", "h2", "--demand", "40mbit"]);
    network.until_app("big", TIMEOUT, |_| network.steering("h3").len() >= 4);
    // The other application would match the packets first.
    kaido.ok(&["app", "rm", "bulk"]);
    let mut server = network.start("h2", &["iperf3", "-s", "-1", "--forceflush"]);
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("Server listening")));
    let sink = network.ipv4("h2").to_string();
    // Below the branch's rate, so that no packet is dropped after it was counted.
    let mut client =
        network.start("h3", &["iperf3", "-c", &sink, "-t", "8", "-b", "30M", "-l", "64K"]);
    let carried = || network.interface(router, next)["rate_bps"].as_u64().unwrap();
    network.until_app("big", TIMEOUT, |app| app["rate_bps"].as_u64() > Some(20_000_000));
    let (mut counted, mut seen) = (0, 0);
    for _ in 0..30 {
        counted += network.show("big")["rate_bps"].as_u64().unwrap();
        seen += carried();
        pause(Duration::from_millis(100));
    }
    let ratio = counted as f64 / seen as f64;
    println!("the host counted {:.1} Mbit/s, {ratio:.3} of {router}'s", counted as f64 / 30e6);
    assert!(
        (0.95..=1.05).contains(&ratio),
        "{counted} at the host, {seen} at {router}: {ratio:.3}"
    );
    // The size of a packet includes the SRv6 headers, on the routers and in the host's count.
    assert!(counted / 30 > 29_000_000, "{counted}");
    client.kill().unwrap();
    client.wait().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}
