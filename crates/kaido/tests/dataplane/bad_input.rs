//! Invalid requests: each is rejected with a clear message, and changes nothing.

use std::time::Duration;

use testkit::until;

use crate::net::{FILE, Net, ip, show};

#[test]
fn root_a_failed_apply_changes_nothing() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    let before = net.show();
    for (text, code, words) in [
        ("ports: { l: {}, r: {}, nowhere: {} }\n", 2, "nowhere"),
        ("ports: { l: {}, lo: {} }\n", 2, "lo"),
        ("ports: { l: {}, r: {} }\nsids: { \"fd00:1::1\": Ende }\n", 2, "End"),
        ("port: { l: {} }\n", 2, "ports"),
    ] {
        let file = net.kaido.file("bad.yaml", text);
        let said = net.kaido.run(&["dataplane", "apply", &file]);
        assert_eq!(said.code, Some(code), "{text}: {said:?}");
        assert!(said.stderr.contains(words), "{text}: {said:?}");
        let now = net.show();
        assert_eq!((&now["ports"], &now["sids"]), (&before["ports"], &before["sids"]));
    }
    assert!(net.ping(3));
}

#[test]
fn root_another_program_on_a_port_is_left_alone() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(FILE);
    // A foreign program on a port that a new file asks for.
    ip(&net.node, &["link add dev t type veth peer name tp", "link set dev t up"]);
    let index = net.node.run(|| nix::net::if_::if_nametoindex("t").unwrap()).unwrap();
    let measure = net.node.run(|| bpf::Measure::load("fd00::".parse().unwrap()).unwrap()).unwrap();
    let attach = || bpf::attach::Attached::new(measure.nothing(), index, bpf::attach::Mode::Native);
    let theirs = net.node.run(attach).unwrap().unwrap();
    let file = net.kaido.file("other.yaml", "ports: { l: {}, r: {}, t: {} }\n");
    let refused = net.kaido.run(&["dataplane", "apply", &file]);
    refused.failed(1, &["`t` cannot be a port", "has an XDP program already"]);
    drop(theirs);
    net.kaido.ok(&["dataplane", "apply", &file]);
    assert!(net.ping(3));
    ip(&net.node, &["link show dev l"]);
}

#[test]
fn root_without_a_daemon_a_command_says_so() {
    let net = Net::new();
    let said = net.kaido.run(&["dataplane", "show"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("no data plane answers on"), "{said:?}");
}

#[test]
fn root_one_namespace_has_one_data_plane_and_one_directory_too() {
    let mut net = Net::new();
    net.start(&[]);
    let other = net.kaido.directory().join("other").to_str().unwrap().to_owned();
    for (arguments, says) in [
        (&["dataplane", "run", "--state", &other][..], "runs in this network namespace"),
        (&["dataplane", "run"], "another data plane has"),
    ] {
        let mut command = net.kaido.command(arguments);
        let output = net.node.run(|| command.output().unwrap()).unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says), "{said}");
    }
    assert!(!std::path::Path::new(&other).exists());
    net.apply(FILE);
    assert!(net.ping(3));
}

/// Linux 6.1 cannot rename an interface that is up.
fn rename(net: &Net, from: &str, to: &str) {
    ip(&net.node, &[&format!("link set dev {from} down")]);
    ip(&net.node, &[&format!("link set dev {from} name {to}")]);
    ip(&net.node, &[&format!("link set dev {to} up")]);
}

#[test]
fn root_a_port_that_goes_or_is_renamed_takes_nothing_else_along() {
    let mut net = Net::new();
    net.start(&[]);
    // A third port, which nothing uses.
    ip(&net.node, &["link add dev t type veth peer name tp", "link set dev t up"]);
    let file = "ports: { l: {}, r: {}, t: {} }\n";
    net.apply(file);
    assert!(net.ping(3));

    // A renamed port is still the same port.
    rename(&net, "t", "t9");
    let limit = Duration::from_secs(5);
    let has_xdp = |name: &str| show(&net.node, &format!("link show dev {name}")).contains("xdp");
    ip(&net.node, &["-6 route add fd00:1::2/128 encap seg6local action End dev r"]);
    until(limit, || net.packets("fd00:1::2/128"), || net.show().to_string());
    assert!(has_xdp("t9"));

    // If it is removed, the other ports still follow the kernel.
    ip(&net.node, &["link del dev t9", "-6 route del fd00:1::2/128"]);
    let gone = || net.packets("fd00:1::2/128").is_none().then_some(());
    until(limit, gone, || net.show().to_string());
    assert!(net.ping(3));
    net.kill();
    net.start(&[]);
    assert!(net.packets("fd00:1::1/128").is_some(), "it starts without the port");

    // If it is added again, it becomes a port again, whatever happened to its pin.
    ip(&net.node, &["link add dev t type veth peer name tp", "link set dev t up"]);
    let back = || show(&net.node, "link show dev t").contains("xdp").then_some(());
    until(limit, back, || net.log());
    net.kill();
    assert!(show(&net.node, "link show dev t").contains("xdp"), "its pin keeps it");
    rename(&net, "t", "t9");
    net.start(&[]);
    net.apply("ports: { l: {}, r: {}, t9: {} }\n");
    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!show(&net.node, "link").contains("xdp"));
    net.end();
}
