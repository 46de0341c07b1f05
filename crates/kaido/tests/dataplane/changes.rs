//! Reload, and death and restart of the daemon, under load.

use std::time::Duration;

use testkit::pause;

use crate::net::{FILE, Net, ip, show};

/// Load in Mbit/s, of datagrams of 1000 bytes: one every 0.3 ms.
const LOAD: f64 = 30.0;

#[test]
fn root_reload_death_and_return_lose_no_packet() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    assert!(net.ping(5));
    let load = net.datagrams(LOAD);
    pause(Duration::from_millis(300));
    for number in 2..6 {
        let sids =
            format!("{FILE}locators: [\"fd00:1::/32\"]\nsids: {{ \"fd00:1::{number}\": End }}\n");
        net.apply(&sids);
        pause(Duration::from_millis(100));
    }
    assert_eq!(net.packets("fd00:1::5/128"), Some(0));
    net.kill();
    pause(Duration::from_millis(500));
    let died_with = load.sent();
    assert!(show(&net.node, "link show dev l").contains("xdp"), "it goes on without its daemon");
    // The next daemon takes over the existing state, with the file that was applied last.
    net.start(&[]);
    assert_eq!(net.packets("fd00:1::5/128"), Some(0));
    pause(Duration::from_millis(500));
    let count = load.finish();
    assert!(count.sent > died_with && died_with > 500, "{count:?}");
    assert_eq!(count.sent - count.received, 0, "{count:?}");
    assert!(net.packets("fd00:1::1/128").unwrap() > 100);
}

#[test]
fn root_without_a_daemon_routes_are_followed_all_the_same() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    assert!(net.ping(5));
    net.kill();
    ip(&net.node, &["-6 route del fd00:2::/48"]);
    // Without a daemon a generation ends after a tenth of a second.
    pause(Duration::from_millis(300));
    assert!(!net.ping(1));
    ip(&net.node, &["-6 route add fd00:2::/48 via fd00:b::2"]);
    pause(Duration::from_millis(300));
    assert!(net.ping(5));
}

#[test]
fn root_tables_grow_under_load() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    assert!(net.ping(5));
    let load = net.datagrams(LOAD);
    pause(Duration::from_millis(200));
    // More entries than the daemon started with.
    let sids: String = (1..5000).map(|n| format!("  \"fd00:1::8:{n:x}\": End\n")).collect();
    net.apply(&format!("{FILE}locators: [\"fd00:1::/32\"]\nsids:\n{sids}"));
    assert_eq!(net.packets("fd00:1::8:1386/128"), Some(0));
    pause(Duration::from_millis(200));
    net.apply(FILE);
    assert_eq!(net.packets("fd00:1::8:1386/128"), None);
    let count = load.finish();
    assert!(count.sent > 500 && count.sent == count.received, "{count:?} {}", net.show());
}
