//! `dataplane: kernel`: the kernel alone forwards the same file, and takes over and hands over
//! under load.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

use testkit::{Datagrams, pause, until};

use crate::net::{Net, ip, show, slower};

/// Load in Mbit/s, of datagrams of 1000 bytes: one every 0.2 ms.
const LOAD: f64 = 40.0;
/// Number of handovers there and back.
const TIMES: u32 = 8;

/// A file that both data planes support: left's packets to fd00:9::/64 pass the End, and leave the
/// End.DT6 like those to fd00:99::/64.
const FILE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\", \"fd00:7::/48\"]
import: false
ports: { l: {}, r: {} }
sids:
  fd00:7::e: End
  fd00:7::d6: {behavior: End.DT6, table: 254}
";

/// Left is a tenant, and the node encapsulates its packets.
const TENANT: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
import: false
ports: { l: {tenant: blue}, r: {} }
tenants: { blue: { routes: { fd00:99::/64: [fd00:2::d6] } } }
";

fn by(dataplane: &str, file: &str) -> String {
    format!("dataplane: {dataplane}\n{file}")
}

/// Creates a net with a left host that encapsulates towards the file's own SIDs.
fn net() -> Net {
    let net = Net::new();
    ip(
        &net.left,
        &[
            "-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:7::e,fd00:2::d6 via \
             fd00:a::1 mtu 1500",
            "-6 route add fd00:99::/64 encap seg6 mode encap segs fd00:7::d6 via fd00:a::1 mtu 1500",
        ],
    );
    ip(&net.node, &["-6 route add fd00:99::/64 via fd00:b::2"]);
    ip(&net.right, &["addr add fd00:99::1/128 dev lo"]);
    net
}

/// Sends numbered datagrams from left to right.
fn datagrams(net: &Net, to: &str) -> Datagrams {
    let receiving = net.right.run(|| UdpSocket::bind(to).unwrap()).unwrap();
    let connect = || {
        let socket = UdpSocket::bind("[fd00:a::2]:0").unwrap();
        socket.connect(to).unwrap();
        socket
    };
    let sending = net.left.run(connect).unwrap();
    Datagrams::start(sending, receiving, 1000, LOAD / slower())
}

fn has_xdp(net: &Net) -> bool {
    ["l", "r"].iter().any(|port| show(&net.node, &format!("link show dev {port}")).contains("xdp"))
}

/// Hands over repeatedly under load. After each handover calls `check` with the output of `show`,
/// and with true if XDP forwards.
fn hand_over(net: &mut Net, file: &str, to: &[&str], check: fn(&serde_json::Value, bool)) {
    net.start(&[]);
    net.apply(&by("kernel", file));
    let loads: Vec<_> = to.iter().map(|to| datagrams(net, to)).collect();
    let open = |net: &Net| std::fs::read_dir(format!("/proc/{}/fd", net.pid())).unwrap().count();
    let mut files = vec![open(net)];
    for _ in 0..(f64::from(TIMES) / slower()).max(1.0) as u32 {
        for dataplane in ["xdp", "kernel"] {
            let changes = net.apply(&by(dataplane, file));
            let text = changes["changes"].to_string();
            assert!(text.contains("~ dataplane ") && !text.contains("+ "), "{text}");
            pause(Duration::from_millis(100));
            let shown = net.show();
            assert_eq!(shown["dataplane"], dataplane);
            assert_eq!(has_xdp(net), dataplane == "xdp");
            check(&shown, dataplane == "xdp");
        }
        files.push(open(net));
    }
    for load in loads {
        let count = load.finish();
        eprintln!("{count:?}");
        // Interface counters, to locate a loss.
        let links = [(&net.left, "port"), (&net.node, "l"), (&net.node, "r"), (&net.right, "port")];
        let links = links.map(|(on, name)| show(on, &format!("-s -s link show dev {name}")));
        let shown = || format!("{count:?} {}\n{}", net.show(), links.join("\n"));
        assert!(count.sent > 500 && count.sent == count.received, "{}", shown());
    }
    // XDP has released its descriptors. At first, the connection of a command may still be open.
    assert!(files.last() <= files.first(), "{files:?}");
}

#[test]
fn root_endpoints_are_handed_over_without_loss() {
    let mut net = net();
    let check = |shown: &serde_json::Value, xdp: bool| {
        for sid in shown["sids"].as_array().unwrap() {
            let counted = sid["packets"].as_u64();
            assert_eq!(counted.is_some_and(|counted| counted > 0), xdp, "{shown}");
            assert_eq!(sid["packets"].is_null(), !xdp, "{shown}");
        }
    };
    hand_over(&mut net, FILE, &["[fd00:9::1]:7000", "[fd00:99::1]:7000"], check);
    // The forwarding state outlives the daemon.
    net.apply(FILE);
    net.kill();
    assert!(has_xdp(&net) && net.ping(3));
    net.start(&[]);
    assert!(has_xdp(&net));
    net.apply(&by("kernel", FILE));
    // The end of the daemon changes nothing, and the next one continues with the kernel.
    net.end();
    assert!(net.ping(5) && !has_xdp(&net));
    net.start(&[]);
    assert_eq!(net.show()["dataplane"], "kernel");
    assert!(net.ping(5));
    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!net.ping(1), "nobody has the SID any more");
    assert_eq!(show(&net.node, "-6 route show table all proto 76"), "");
    net.end();
    assert_eq!(std::fs::read_dir(net.state()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn root_a_headend_is_handed_over_without_loss() {
    let mut net = net();
    ip(&net.left, &["-6 route del fd00:99::/64"]);
    // Remove the node's own route too: the policy's far end has the address as well.
    ip(&net.node, &["-6 route del fd00:99::/64"]);
    let check = |shown: &serde_json::Value, xdp: bool| {
        let mut policies = shown["policies"].as_array().unwrap().iter();
        let policy = policies.find(|policy| policy["name"] == "blue fd00:99::/64").unwrap();
        let counted = policy["packets"].as_u64();
        assert_eq!(counted.is_some_and(|counted| counted > 0), xdp, "{shown}");
        assert_eq!(shown["tenants"].as_array().unwrap().is_empty(), !xdp, "{shown}");
    };
    hand_over(&mut net, TENANT, &["[fd00:99::1]:7000"], check);
    net.end();
}

#[test]
fn root_a_daemon_that_was_killed_in_xdp_is_followed_by_the_kernel() {
    let mut net = net();
    net.start(&[]);
    net.apply(FILE);
    let load = datagrams(&net, "[fd00:9::1]:7000");
    net.kill();
    assert!(has_xdp(&net));
    let file = net.kaido.file("kernel.yaml", &by("kernel", FILE));
    net.start(&["--file", &file]);
    assert!(!has_xdp(&net));
    net.kill();
    pause(Duration::from_millis(100));
    // And in the opposite direction.
    let file = net.kaido.file("xdp.yaml", FILE);
    net.start(&["--file", &file]);
    assert!(has_xdp(&net));
    pause(Duration::from_millis(100));
    let count = load.finish();
    assert!(count.sent > 500 && count.sent == count.received, "{count:?} {}", net.show());
}

/// The next daemon assigns new tenant numbers. No tenant may be sent to another one's old table,
/// not even during the change.
#[test]
fn root_a_daemon_reuses_no_table_of_the_last_one() {
    let mut net = net();
    let tables = |net: &Net| -> BTreeSet<String> {
        let rules = show(&net.node, "-6 rule");
        let lookups = rules.lines().filter(|line| line.contains("iif") && line.contains("lookup"));
        lookups.map(|line| line.split("lookup ").nth(1).unwrap().trim().to_owned()).collect()
    };
    for dataplane in ["kernel", "xdp"] {
        net.start(&[]);
        net.apply(&by(dataplane, TENANT));
        let before = tables(&net);
        assert!(!before.is_empty());
        net.kill();
        assert_eq!(tables(&net), before);
        net.start(&[]);
        let after = tables(&net);
        assert!(!after.is_empty() && after.is_disjoint(&before), "{before:?} {after:?}");
        net.end();
    }
}

#[test]
fn root_an_entry_without_a_kernel_counterpart_is_refused_by_name() {
    let mut net = net();
    net.start(&[]);
    net.apply(&by("kernel", FILE));
    let before = show(&net.node, "-6 route show table all proto 76");
    let refused = |text: &str, what: &[&str]| {
        let file = net.kaido.file("refused.yaml", text);
        for command in ["plan", "apply"] {
            let what = [&["kernel-only mode does not support these entries"], what].concat();
            net.kaido.run(&["dataplane", command, &file]).failed(2, &what);
        }
        assert_eq!(show(&net.node, "-6 route show table all proto 76"), before);
        assert!(net.ping(3));
    };
    refused(
        &format!(
            "{}  fd00:7::d4: {{behavior: End.DT4, table: 100}}\n  \
             fd00:7::d5: {{behavior: End.DX4, next_hop: 0.0.0.0, vlan: 10}}\n  \
             fd00:7::b6: {{behavior: End.B6.Encaps, policy: [\"fd00:2::1\"]}}\n",
            by("kernel", FILE)
        ),
        &[
            "sid fd00:7::d4: the kernel finds its table only by a VRF",
            "sid fd00:7::d5: the kernel cannot tag",
            "sid fd00:7::b6: the kernel has no End.B6.Encaps.Red",
        ],
    );
    let lists = "{lists: [{segments: [\"fd00:2::d6\"]}, {segments: [\"fd00:2::d7\"]}]}";
    let text = by("kernel", TENANT).replace("[fd00:2::d6]", lists);
    let text = text
        .replace("fd00:99::/64:", "fd00:98::/64: [fd00:2::d6], ::/0: [fd00:2::d6], fd00:99::/64:");
    let text = text.replace("blue: { routes", "blue: { attachments: [{port: r, vlan: 7}], routes");
    refused(
        &text,
        &[
            "attachment r vlan 7: the kernel needs an interface",
            "route blue fd00:99::/64: the kernel does not distribute flows over lists",
            "route blue ::/0: SIDs or segments are in it",
        ],
    );
    // A SID for which another route exists; in XDP the file's entry wins.
    ip(&net.node, &["-6 route add fd00:7::a/128 dev r"]);
    let text = format!("{FILE}  fd00:7::a: End\n");
    refused(&by("kernel", &text), &["sid fd00:7::a: another program has a route for it"]);
    // There are no counters and there is nothing to trace, and both commands say so.
    net.kaido
        .run(&["dataplane", "trace", "--match", "port l", "--count", "1"])
        .failed(1, &["the kernel forwards here", "only XDP can be traced"]);
    let text = net.kaido.ok(&["dataplane", "show"]);
    assert!(text.contains("the kernel alone forwards"), "{text}");
    let sid = text.lines().find(|line| line.starts_with("fd00:7::e")).unwrap();
    assert!(sid.split_whitespace().filter(|word| *word == "-").count() == 2, "{text}");

    // XDP's entry is kept if the kernel cannot take over.
    net.apply(&format!("{FILE}  fd00:7::a: End\n"));
    assert!(has_xdp(&net));
    let file = net.kaido.file("refused.yaml", &by("kernel", &format!("{FILE}  fd00:7::a: End\n")));
    net.kaido.run(&["dataplane", "apply", &file]).failed(2, &["sid fd00:7::a"]);
    assert!(has_xdp(&net) && net.ping(3));
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}

#[test]
fn root_the_kernel_alone_restores_routes_that_another_program_removes() {
    let mut net = net();
    net.start(&[]);
    net.apply(&by("kernel", FILE));
    assert!(net.ping(3));
    ip(&net.node, &["-6 route flush table main proto 76"]);
    until(Duration::from_secs(5), || net.ping(1).then_some(()), || net.log());
    // While its port is down, the route of a SID is on another port, through which packets go
    // nowhere.
    let is_on = |port: &str| {
        let routes = show(&net.node, "-6 route show proto 76");
        let mut sids = routes.lines().filter(|line| line.starts_with("fd00:7::e "));
        sids.any(|line| line.contains(&format!("dev {port} ")))
    };
    assert!(is_on("l"));
    ip(&net.node, &["link set dev l down"]);
    until(Duration::from_secs(5), || is_on("r").then_some(()), || net.log());
    ip(&net.node, &["link set dev l up", "addr replace fd00:a::1/64 dev l nodad"]);
    until(Duration::from_secs(5), || is_on("l").then_some(()), || net.log());
    until(Duration::from_secs(5), || net.ping(1).then_some(()), || net.log());
    assert!(!has_xdp(&net));
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}
