//! `kaido dataplane trace` shows the verdict of packets without affecting them.

use std::process::Stdio;
use std::time::Duration;

use testkit::{pause, until, values_of};

use crate::net::{Net, ip, show};

const FILE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {tenant: blue}, r: {} }
tenants: { blue: { routes: { fd00:99::/64: [fd00:2::d6] } } }
sids: { fd00:1::e: End }
";

/// Returns the name of the program on a port.
fn program(net: &Net) -> String {
    let shown = show(&net.node, "-d link show dev l");
    let line = shown.lines().find(|line| line.contains("prog/xdp")).unwrap_or_default();
    line.split_whitespace().skip_while(|word| *word != "name").nth(1).unwrap_or_default().into()
}

fn wait_for(net: &Net, name: &str) {
    until(Duration::from_secs(60), || (program(net) == name).then_some(()), || program(net));
}

#[test]
fn root_a_trace_shows_entry_verdict_and_sent_packet() {
    let mut net = Net::new();
    ip(&net.right, &["addr add fd00:99::1/128 dev lo"]);
    net.start(&[]);
    net.apply(FILE);
    let ping = |address: &str| {
        let line = ["-6", "-q", "-c", "2", "-i", "0.05", "-W", "2", address];
        let run = || std::process::Command::new("ping").args(line).output().unwrap();
        net.left.run(run).unwrap()
    };
    assert!(ping("fd00:99::1").status.success());

    let mut command = net.kaido.command(&[
        "dataplane",
        "trace",
        "--json",
        "--count",
        "2",
        "--match",
        "port l dst fd00:99::/64",
    ]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let in_front = || (program(&net) == "trace").then_some(());
    until(Duration::from_secs(60), in_front, || program(&net));
    assert!(ping("fd00:b::2").status.success(), "what does not match goes on");
    assert!(ping("fd00:99::1").status.success(), "and so does what matches");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let packets = values_of(&["dataplane", "trace"], &output.stdout);
    assert_eq!(packets.len(), 2, "{packets:#?}");
    for packet in &packets {
        assert_eq!(packet["port"], "l");
        assert_eq!(packet["entry"], "policy blue fd00:99::/64");
        assert_eq!((&packet["verdict"], &packet["reason"]), (&"sent".into(), &"".into()));
        let headers = packet["headers"].as_str().unwrap();
        assert!(headers.ends_with("IPv6 fd00:a::2 > fd00:99::1 hop limit 64, ICMPv6"), "{headers}");
        let sent = packet["sent"].as_str().unwrap();
        let outer = "IPv6 fd00:1:: > fd00:2::d6 hop limit 63, IPv6 fd00:a::2 > fd00:99::1";
        assert!(sent.contains(outer), "{sent}");
    }
    let away = || (program(&net) == "srv6").then_some(());
    until(Duration::from_secs(5), away, || program(&net));

    // The reason why a packet is not sent, as text.
    let mut command = net.kaido.command(&["dataplane", "trace", "--match", "dst fd00:1::e"]);
    let child = command.args(["--count", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    until(Duration::from_secs(60), in_front, || program(&net));
    // From the SRv6 network: a tenant does not reach a SID.
    let line = "ping -6 -c 1 -W 1 fd00:1::e".split(' ').collect::<Vec<_>>();
    let run = || std::process::Command::new(line[0]).args(&line[1..]).output().unwrap();
    net.right.run(run).unwrap();
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    for part in ["matches SID fd00:1::e/128 End", "left to the kernel (no-srh)"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn root_a_trace_that_is_killed_ends_and_nothing_is_lost() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(crate::net::FILE);
    let sending = net.datagrams(2.0);
    for _ in 0..3 {
        let mut command = net.kaido.command(&["dataplane", "trace", "--count", "10000"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let in_front = || (program(&net) == "trace").then_some(());
        until(Duration::from_secs(60), in_front, || program(&net));
        // Only one trace at a time.
        let other = net.kaido.run(&["dataplane", "trace"]);
        other.failed(1, &["another client traces this data plane already"]);
        pause(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        let away = || (program(&net) == "srv6").then_some(());
        until(Duration::from_secs(5), away, || program(&net));
    }
    let count = sending.finish();
    assert_eq!(count.sent, count.received, "{count:?}");
}

#[test]
fn root_a_trace_with_an_impossible_filter_is_refused() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(crate::net::FILE);
    for (what, says) in [
        ("port eth9", "`eth9` is not a port"),
        ("dst 10.0.0.0/33", "`10.0.0.0/33` is neither an address nor a prefix"),
        ("src 10.0.0.1 dst fd00::1", "different families"),
        ("vlan 4095", "write 1 to 4094"),
        ("to fd00::1", "use port, vlan, src and dst"),
        ("dst", "`dst` in --match needs a value"),
    ] {
        net.kaido.run(&["dataplane", "trace", "--match", what]).failed(2, &[says]);
    }
    assert_eq!(program(&net), "srv6");
}

#[test]
fn root_a_daemon_that_is_killed_while_it_traces_goes_on_forwarding() {
    let mut net = Net::new();
    net.start(&[]);
    net.apply(crate::net::FILE);
    let sending = net.datagrams(2.0);
    let mut command = net.kaido.command(&["dataplane", "trace", "--match", "dst fd00:ffff::1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&net, "trace");
    net.kill();
    child.wait().unwrap();
    let before = net.redirected();
    pause(Duration::from_millis(300));
    assert!(net.redirected() > before, "the tracer still leads to the program");
    net.start(&[]);
    assert_eq!(program(&net), "srv6", "the next daemon takes the tracer away");
    let count = sending.finish();
    assert_eq!(count.sent, count.received, "{count:?}");
    assert!(!net.state_has("bpf/watch:trace"));

    // A daemon that is asked to end does not wait for packets that never arrive.
    let mut child = command.spawn().unwrap();
    wait_for(&net, "trace");
    net.end();
    child.wait().unwrap();
    assert_eq!(program(&net), "srv6");
}
