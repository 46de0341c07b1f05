//! Ports whose interfaces get other names while the data plane runs, or between two daemons.

use std::collections::BTreeSet;
use std::time::Duration;

use testkit::until;

use crate::net::{Net, ip, show};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Left is outside of the SR domain.
const EDGE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {sids: false}, r: {} }
sids: { \"fd00:1::1\": End }
";

fn rename(net: &Net, names: &[(&str, &str)]) {
    for (from, to) in names {
        ip(&net.node, &[&format!("link set dev {from} down")]);
        ip(&net.node, &[&format!("link set dev {from} name {to}")]);
        ip(&net.node, &[&format!("link set dev {to} up")]);
    }
}

fn has_xdp(net: &Net, interface: &str) -> bool {
    show(&net.node, &format!("link show dev {interface}")).contains("xdp")
}

/// Returns the pins of ports, each with an interface index and a name in the file.
fn pins(net: &Net) -> BTreeSet<String> {
    let pins = std::fs::read_dir(format!("{}/bpf", net.state())).unwrap();
    let names = pins.map(|pin| pin.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(":l") || name.ends_with(":r")).collect()
}

#[test]
fn root_ports_that_swap_their_names_keep_the_program_when_the_daemon_ends() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    let before = pins(&net);
    assert_eq!(before.len(), 2, "{before:?}");
    rename(&net, &[("l", "t"), ("r", "l"), ("t", "r")]);
    let swapped = |pin: &String| match pin.split_once(':').unwrap() {
        (index, "l") => format!("{index}:r"),
        (index, _) => format!("{index}:l"),
    };
    let swapped: BTreeSet<String> = before.iter().map(swapped).collect();
    until(TIMEOUT, || (pins(&net) == swapped).then_some(()), || format!("{:?}", pins(&net)));
    net.end();
    assert!(has_xdp(&net, "l") && has_xdp(&net, "r"), "{}", show(&net.node, "link"));
}

/// The file has the former name of the interface.
#[test]
fn root_a_renamed_port_stays_a_port_for_the_next_daemon() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    let before = pins(&net);
    net.kill();
    rename(&net, &[("l", "other.7")]);
    net.start(&[]);
    assert_eq!(pins(&net), before);
    assert!(has_xdp(&net, "other.7"));
    net.end();
    assert!(has_xdp(&net, "other.7"));
}

/// Without the program and the rules, senders on the renamed interface would reach SIDs.
#[test]
fn root_a_renamed_port_whose_name_is_taken_is_down() {
    let mut net = Net::new();
    let is_down =
        |net: &Net| (!show(&net.node, "link show dev other").contains(",UP")).then_some(());
    net.start(&[]);
    net.apply(EDGE);
    for is_killed in [false, true] {
        if is_killed {
            ip(&net.node, &["link del dev l"]);
            rename(&net, &[("other", "l")]);
            let is_port = || has_xdp(&net, "l").then_some(());
            until(TIMEOUT, is_port, || net.show().to_string());
            net.kill();
        }
        rename(&net, &[("l", "other")]);
        ip(&net.node, &["link add dev l mtu 1700 type veth peer name y", "link set dev l up"]);
        if is_killed {
            net.start(&[]);
        }
        until(TIMEOUT, || is_down(&net), || show(&net.node, "link"));
        let is_port = || has_xdp(&net, "l").then_some(());
        until(TIMEOUT, is_port, || net.show().to_string());
        assert!(net.log().contains("`other` is set down: it was the port `l`"), "{}", net.log());
    }
}
