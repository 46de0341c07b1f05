//! Only packets that match an application take its path.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use testkit::{pause, until};

use crate::network::{Network, TIMEOUT, kaido};
use crate::topologies::{BRANCHES, LONG, with_xdp};

/// A demand that only the long branch covers.
const WIDE: [&str; 6] = ["--from", "h3", "--demand", "30mbit", "--to", "h2"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Branch {
    Short,
    Long,
}

/// The branch that datagrams from h3 take; all must arrive.
#[track_caller]
fn branch(network: &Network<'_>, to: IpAddr, port: u16, dscp: i32) -> Branch {
    let mark = |socket: &UdpSocket| match to {
        IpAddr::V4(_) => setsockopt(socket, sockopt::Ipv4Tos, &(dscp << 2)).unwrap(),
        IpAddr::V6(_) => setsockopt(socket, sockopt::Ipv6TClass, &(dscp << 2)).unwrap(),
    };
    let look = || [network.sent("r3", "r5"), network.sent("r4", "r5")];
    let before = look();
    let datagrams = network.send_with("h3", to, port, 4.0, mark);
    pause(Duration::from_millis(200));
    let count = datagrams.finish();
    let now = look();
    count.assert_whole(&format!("to {to} port {port}"));
    assert!(count.sent > 20, "{count:?}");
    // The only other packets are IPv6 neighbor discovery.
    let [short, long] = [0, 1].map(|at| now[at] - before[at]);
    match (short >= count.sent, long >= count.sent) {
        (true, false) if long < 10 => Branch::Short,
        (false, true) if short < 10 => Branch::Long,
        _ => panic!("{count:?}: {short} over the short branch, {long} over the long one"),
    }
}

/// Adds the application `x` and waits until the host steers `flows` of its flows.
#[track_caller]
fn add(network: &Network<'_>, arguments: &[&str], flows: usize) {
    let added = network.kaido.json(&[&["app", "add", "x"], arguments].concat());
    assert_eq!(added["path"], serde_json::json!(LONG));
    // A rule and a route each.
    let done = || (network.steering("h3").len() == 2 * flows).then_some(());
    until(TIMEOUT, done, || format!("{:#?}", network.steering("h3")));
}

#[track_caller]
fn remove(network: &Network<'_>) {
    network.kaido.ok(&["app", "rm", "x"]);
    let done = || network.steering("h3").is_empty().then_some(());
    until(TIMEOUT, done, || format!("{:#?}", network.steering("h3")));
}

#[test]
fn root_only_the_packets_that_match_are_steered() {
    only_what_matches(BRANCHES);
}

#[test]
fn root_only_the_packets_that_match_are_steered_through_xdp() {
    only_what_matches(&with_xdp(BRANCHES));
}

fn only_what_matches(text: &str) {
    let kaido = kaido();
    let network = Network::up(&kaido, text);
    network.find_neighbors();
    let (ipv4, ipv6) = (IpAddr::from(network.ipv4("h2")), IpAddr::from(network.ipv6("h2")));
    // It matches the same packets as the prefix below, and was added first.
    kaido.ok(&["app", "rm", "bulk"]);
    for address in [ipv4, ipv6] {
        assert_eq!(branch(&network, address, 5201, 0), Branch::Short);
    }

    add(&network, &[&WIDE[..], &["--protocol", "udp", "--ports", "5201-5202"]].concat(), 2);
    for address in [ipv4, ipv6] {
        assert_eq!(branch(&network, address, 5200, 0), Branch::Short);
        assert_eq!(branch(&network, address, 5201, 0), Branch::Long);
        assert_eq!(branch(&network, address, 5202, 46), Branch::Long);
        assert_eq!(branch(&network, address, 5300, 0), Branch::Short);
    }
    remove(&network);
    assert_eq!(branch(&network, ipv4, 5201, 0), Branch::Short);

    add(&network, &[&WIDE[..], &["--dscp", "ef"]].concat(), 2);
    for address in [ipv4, ipv6] {
        assert_eq!(branch(&network, address, 5201, 46), Branch::Long);
        assert_eq!(branch(&network, address, 5201, 0), Branch::Short);
        assert_eq!(branch(&network, address, 5201, 10), Branch::Short);
    }
    remove(&network);

    let prefix = format!("{ipv4}/32");
    add(&network, &[&WIDE[..5], &[prefix.as_str()]].concat(), 1);
    assert_eq!(branch(&network, ipv4, 5201, 0), Branch::Long);
    assert_eq!(branch(&network, ipv6, 5201, 0), Branch::Short);
    remove(&network);
}

#[test]
fn root_a_port_range_of_another_protocol_is_not_steered() {
    let kaido = kaido();
    let network = Network::up(&kaido, BRANCHES);
    network.find_neighbors();
    let ipv4 = IpAddr::from(network.ipv4("h2"));
    add(&network, &[&WIDE[..], &["--protocol", "tcp", "--ports", "5201"]].concat(), 2);
    assert_eq!(branch(&network, ipv4, 5201, 0), Branch::Short);
}
