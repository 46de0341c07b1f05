//! Answers that the node itself sends to inner packets of a service function.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use testkit::until;

use crate::functions::{FILE, function_net, nft, ping};
use crate::net::{Net, ip, show};

const REJECT: &str = "
table inet firewall {
    chain forward {
        type filter hook forward priority filter;
        meta iifname != kaido-in accept
        tcp dport 7009 reject with tcp reset
        reject with icmpx type admin-prohibited
    }
}";

/// Answers are sent to left's SIDs, by family.
fn with_ways_back() -> String {
    let way = |sid| format!("{{ behavior: End.AN.NF, answers: [\"{sid}\"] }}");
    let ipv4 = FILE.replace("End.AN.NF", &way("fd00:3::d4"));
    format!("{ipv4}  fd00:1::e:0:0/112: {}\n", way("fd00:3::d6"))
}

fn net() -> Net {
    let net = function_net();
    ip(
        &net.left,
        &[
            "-6 route add fd00:3::d4/128 encap seg6local action End.DX4 nh4 0.0.0.0 dev port",
            "-6 route add fd00:3::d6/128 encap seg6local action End.DT6 table 255 dev port",
        ],
    );
    ip(&net.node, &["-6 route add fd00:3::/48 via fd00:a::2"]);
    net
}

/// Returns true if left receives an ICMP error that a rule forbids its packets.
fn is_told(net: &Net, to: &str) -> bool {
    let run = || Command::new("ping").args(["-c", "1", "-W", "1", to]).output().unwrap();
    let said = String::from_utf8(net.left.run(run).unwrap().stdout).unwrap();
    said.contains("filtered") || said.contains("prohibited")
}

fn connect(net: &Net, to: &str) -> ErrorKind {
    let to: SocketAddr = to.parse().unwrap();
    let patience = Duration::from_millis(500);
    net.left.run(|| TcpStream::connect_timeout(&to, patience).unwrap_err().kind()).unwrap()
}

fn dropped_answers(net: &Net) -> u64 {
    let shown = net.show();
    let reasons = shown["reasons"].as_array().unwrap();
    let reason = reasons.iter().find(|reason| reason["reason"] == "local-answer").unwrap();
    reason["dropped"].as_u64().unwrap()
}

#[test]
fn root_answers_of_the_node_do_not_leave_in_the_clear() {
    let mut net = net();
    nft(&net, REJECT);
    net.start(&[]);
    net.apply(FILE);
    for to in ["10.9.0.1", "fd00:9::1"] {
        let before = dropped_answers(&net);
        assert!(!is_told(&net, to), "{to}");
        assert_eq!(dropped_answers(&net), before + 1, "{to}");
    }
    for to in ["10.9.0.1:7009", "[fd00:9::1]:7009"] {
        let before = dropped_answers(&net);
        assert_eq!(connect(&net, to), ErrorKind::TimedOut, "{to}");
        assert!(dropped_answers(&net) > before, "{to}");
    }
    // Nor in an outer header that a route adds.
    let route = "10.1.0.2/32 encap seg6 mode encap segs fd00:3::bad via inet6 fd00:a::2 dev l";
    ip(&net.node, &[&format!("route add {route}")]);
    let before = dropped_answers(&net);
    assert!(!is_told(&net, "10.9.0.1"));
    assert_eq!(dropped_answers(&net), before + 1);
    ip(&net.node, &[&format!("route del {route}")]);
    // Packets that do not answer a function's packet leave as before.
    assert_eq!(connect(&net, "10.1.0.1:9"), ErrorKind::ConnectionRefused);
    assert_eq!(connect(&net, "[fd00:a::1]:9"), ErrorKind::ConnectionRefused);
    ip(&net.left, &["route add 10.77.0.0/16 via 10.1.0.1"]);
    ip(&net.node, &["route add prohibit 10.77.0.0/16"]);
    assert!(is_told(&net, "10.77.0.1"));
}

#[test]
fn root_answers_of_the_node_go_back_by_their_own_way() {
    let mut net = net();
    nft(&net, REJECT);
    net.start(&[]);
    net.apply(&with_ways_back());
    ip(
        &net.left,
        &[
            "-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:1::e:0:1111,fd00:2::d6 via \
           fd00:a::1 mtu 1500",
        ],
    );
    for to in ["10.9.0.1", "fd00:9::1"] {
        assert!(is_told(&net, to), "{to}");
    }
    for to in ["10.9.0.1:7009", "[fd00:9::1]:7009"] {
        assert_eq!(connect(&net, to), ErrorKind::ConnectionRefused, "{to}");
    }
    // Also if the node has no route to the tenant's address.
    ip(&net.node, &["addr del 10.1.0.1/24 dev l"]);
    assert!(is_told(&net, "10.9.0.1"));
    ip(&net.node, &["route add 10.0.0.0/8 via inet6 fe80::1 dev kaido-out"]);
    assert_eq!(connect(&net, "10.9.0.1:7009"), ErrorKind::ConnectionRefused);
    assert_eq!(dropped_answers(&net), 0);
}

#[test]
fn root_guards_come_with_interfaces_and_go_with_the_function() {
    let mut net = net();
    nft(&net, REJECT);
    net.start(&[]);
    net.apply(FILE);
    // By another interface, which is added later.
    ip(
        &net.node,
        &[
            "link add later type veth peer name other",
            "link set later up",
            "link set other up",
            "route add 10.1.0.2/32 dev later",
            "neigh add 10.1.0.2 lladdr 02:00:00:00:00:01 dev later",
        ],
    );
    let guarded = || {
        let before = dropped_answers(&net);
        assert!(!is_told(&net, "10.9.0.1"));
        (dropped_answers(&net) > before).then_some(())
    };
    until(Duration::from_secs(10), guarded, || "no guard".into());
    ip(&net.node, &["route del 10.1.0.2/32 dev later", "link del later"]);
    // Guards outlive the daemon, and the next daemon takes them over.
    net.kill();
    assert!(!is_told(&net, "10.9.0.1"));
    net.start(&[]);
    assert!(!is_told(&net, "10.9.0.1"));
    net.apply("ports: { l: {}, r: {} }\n");
    assert!(!ping(&net, "10.9.0.1"));
    let rules = show(&net.node, "rule") + &show(&net.node, "-6 rule");
    assert!(!rules.contains("ipproto"), "{rules}");
    let pins = format!("{}/bpf", net.state());
    let names = std::fs::read_dir(&pins).unwrap();
    let names = names.map(|pin| pin.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        names.filter(|name| name.contains("guard") || name.contains("held")).collect();
    assert!(left.is_empty(), "{left:?}");
}
