//! Ports that are deleted and created again while the daemon does not look.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::until;

use crate::modes::pair;
use crate::net::{EDGE, Net, TIMEOUT, ip, show};

fn signal(net: &Net, signal: Signal) {
    kill(Pid::from_raw(net.pid() as i32), signal).expect("it runs");
}

/// Returns the number of rules that keep the packets of an interface from SIDs.
fn rules(net: &Net, interface: &str) -> usize {
    let rules = show(&net.node, "-6 rule");
    let is_closed =
        |line: &&str| line.contains(&format!("iif {interface} ")) && line.contains("blackhole");
    rules.lines().filter(is_closed).count()
}

/// Waits until `show` has this warning.
fn until_warned(net: &Net, warning: &str) {
    let is_warned = || net.show()["warnings"].to_string().contains(warning).then_some(());
    until(TIMEOUT, is_warned, || net.show().to_string());
}

/// Its name is that of a port which the daemon still has.
#[test]
fn root_a_port_that_is_created_again_at_once_and_refused_is_down_alone() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    signal(&net, Signal::SIGSTOP);
    pair(&net, &["link del dev l", "link add x type veth peer name y"], "2");
    ip(&net.node, &["link set dev x name l", "link set dev l up"]);
    signal(&net, Signal::SIGCONT);
    let is_down = || (!show(&net.node, "link show dev l").contains("UP")).then_some(());
    until(TIMEOUT, is_down, || show(&net.node, "link"));
    until_warned(&net, "`l` is down");
    assert!(rules(&net, "l") > 0, "it may be set up before it is set down again");
    // Other ports are changed.
    net.apply(&EDGE.replace("::1\": End", "::2\": End"));
    assert!(rules(&net, "l") > 0);
    pair(&net, &[], "1");
    ip(&net.node, &["link set dev l up"]);
    let is_back = || (net.show()["ports"].as_array().map(Vec::len) == Some(2)).then_some(());
    until(TIMEOUT, is_back, || net.show().to_string());
}

/// With the same index, MAC address and name.
#[test]
fn root_a_port_that_is_created_again_as_it_was_gets_its_program() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    let links: serde_json::Value =
        serde_json::from_str(&show(&net.node, "-json link show dev l")).unwrap();
    let (index, mac) = (&links[0]["ifindex"], links[0]["address"].as_str().unwrap());
    let add = format!("link add name l index {index} address {mac} mtu 1700 type veth peer name y");
    signal(&net, Signal::SIGSTOP);
    ip(&net.node, &["link del dev l", &add, "link set dev y up", "link set dev l up"]);
    assert!(!show(&net.node, "link show dev l").contains("xdp"));
    signal(&net, Signal::SIGCONT);
    let is_on = || show(&net.node, "link show dev l").contains("xdp").then_some(());
    until(TIMEOUT, is_on, || show(&net.node, "link"));
}

#[test]
fn root_an_absent_port_keeps_its_rules_when_a_file_is_applied() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(EDGE);
    let before = rules(&net, "l");
    assert!(before > 0, "{}", show(&net.node, "-6 rule"));
    ip(&net.node, &["link del dev l"]);
    net.apply(&EDGE.replace("[\"fd00:1::/48\"]", "[\"fd00:1::/48\", \"fd00:8::/48\"]"));
    assert_eq!(rules(&net, "l"), 2 * before, "{}", show(&net.node, "-6 rule"));
    // Not those of a port that the file does not have.
    net.apply(&EDGE.replace("l: {sids: false}, ", ""));
    assert_eq!(rules(&net, "l"), 0);
}
