//! Ports whose interfaces get other names while the data plane runs, or between two daemons.

use std::collections::BTreeSet;

use testkit::until;

use crate::net::{EDGE, Net, TIMEOUT, ip, show};

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
    let shown = net.show();
    let port = shown["ports"].as_array().unwrap().iter().find(|port| port["name"] == "l");
    assert_eq!(port.unwrap()["renamed_to"], "other.7", "{shown}");
    assert!(has_xdp(&net, "other.7"));
    net.end();
    assert!(has_xdp(&net, "other.7"));
}

/// Adds an interface with the former name of a renamed port.
fn take_name(net: &Net) {
    ip(&net.node, &["link add dev l mtu 1700 type veth peer name y", "link set dev l up"]);
}

/// Waits until the renamed interface is down, and the new one a port.
fn until_down(net: &Net) {
    let is_down = || (!show(&net.node, "link show dev other").contains(",UP")).then_some(());
    until(TIMEOUT, is_down, || show(&net.node, "link"));
    until(TIMEOUT, || has_xdp(net, "l").then_some(()), || net.show().to_string());
    assert!(net.log().contains("`other` is set down: it was the port `l`"), "{}", net.log());
}

/// Without the program and the rules, senders on the renamed interface would reach SIDs.
#[test]
fn root_a_renamed_port_whose_name_is_taken_is_down() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    rename(&net, &[("l", "other")]);
    take_name(&net);
    until_down(&net);
    // Also if it is set up again.
    ip(&net.node, &["link set dev other up"]);
    until_down(&net);
}

#[test]
fn root_a_port_that_is_renamed_between_daemons_and_whose_name_is_taken_is_down() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    net.kill();
    rename(&net, &[("l", "other")]);
    take_name(&net);
    net.start(&[]);
    until_down(&net);
}
