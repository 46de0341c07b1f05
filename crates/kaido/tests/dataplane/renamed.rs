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

/// Waits until an interface is down.
fn until_down(net: &Net, interface: &str) {
    let line = format!("link show dev {interface}");
    let is_down = || (!show(&net.node, &line).contains(",UP")).then_some(());
    until(TIMEOUT, is_down, || show(&net.node, "link"));
}

/// Waits until the renamed port is down, and the new interface a port.
fn until_replaced(net: &Net) {
    until_down(net, "other");
    until(TIMEOUT, || has_xdp(net, "l").then_some(()), || net.show().to_string());
    assert!(net.log().contains("`other` is set down: it was `l` of the file"), "{}", net.log());
}

/// Without the program and the rules, senders on the renamed interface would reach SIDs.
#[test]
fn root_a_renamed_port_whose_name_is_taken_is_down() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    rename(&net, &[("l", "other")]);
    take_name(&net);
    until_replaced(&net);
    // Also if it is set up again.
    ip(&net.node, &["link set dev other up"]);
    until_replaced(&net);
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
    until_replaced(&net);
}

/// The kernel forwards none of its packets, by its former name or the present one.
#[test]
fn root_a_renamed_interface_to_a_function_is_closed() {
    let mut net = Net::new();
    ip(&net.node, &["link add dev fn type veth peer name fx", "link set dev fn up"]);
    ip(&net.node, &["link set dev fx up"]);
    let sids = "sids: { \"fd00:1::1\": End, \"fd00:1::f\": {behavior: End.AD, to: fn} }\n";
    let file = EDGE.replace("sids: { \"fd00:1::1\": End }\n", sids);
    net.start(&[]);
    net.apply(&file);
    let rules = |interface: &str| {
        let rules = show(&net.node, "-6 rule");
        rules.lines().filter(|line| line.contains(&format!("iif {interface} "))).count()
    };
    assert!(rules("fn") > 0, "{}", show(&net.node, "-6 rule"));
    rename(&net, &[("fn", "fn2")]);
    until(TIMEOUT, || (rules("fn2") > 0).then_some(()), || show(&net.node, "-6 rule"));
    net.apply(&file);
    assert!(rules("fn2") > 0, "{}", show(&net.node, "-6 rule"));
    ip(&net.node, &["link add dev fn type veth peer name fy", "link set dev fn up"]);
    until_down(&net, "fn2");
    net.kill();
    net.start(&[]);
    ip(&net.node, &["link set dev fn2 up"]);
    until_down(&net, "fn2");
}
