//! End.AN.NF: the node's netfilter processes the inner packets of a chain.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use netlink::Namespace;
use testkit::until;

use crate::net::{Net, ip, show};

/// The bits after the first 112 are the mark.
pub(crate) const FILE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {}, r: {} }
sids:
  fd00:1::f:0:0/112: End.AN.NF
";

/// The paper's rules: a mark selects a chain.
const RULES: &str = "
table inet firewall {
    counter in-pre {}
    counter in-forward {}
    counter in-post {}
    chain pre {
        type filter hook prerouting priority filter;
        meta mark 0x1111 meta iifname kaido-in counter name in-pre
    }
    chain one {
        icmp type echo-request ip length > 1000 drop
        tcp dport 22 drop
        counter name in-forward
        accept
    }
    chain two {
        icmpv6 type echo-request drop
    }
    chain forward {
        type filter hook forward priority filter;
        meta mark 0x1111 goto one
        meta mark 0x2222 goto two
    }
    chain post {
        type filter hook postrouting priority filter;
        meta mark 0x1111 counter name in-post
    }
}";

/// Creates a net in which left's packets to 10.9.0.1 and to fd00:9::1 pass the node's function.
pub(crate) fn function_net() -> Net {
    let net = Net::new();
    let sysctls = || {
        for key in ["conf/all/rp_filter", "conf/default/rp_filter", "ip_early_demux"] {
            netlink::sysctl::write(&format!("ipv4/{key}"), "0").unwrap();
        }
    };
    net.node.run(sysctls).unwrap();
    net.right.run(sysctls).unwrap();
    ip(
        &net.left,
        &[
            "addr add 10.1.0.2/24 dev port",
            "route add 10.9.0.0/24 encap seg6 mode encap segs fd00:1::f:0:1111,fd00:2::d4 dev port \
             mtu 1500",
            "-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:1::f:0:1111,fd00:2::d6 \
             via fd00:a::1 mtu 1500",
        ],
    );
    ip(&net.node, &["addr add 10.1.0.1/24 dev l"]);
    ip(
        &net.right,
        &[
            "addr add 10.9.0.1/32 dev lo",
            "route add 10.0.0.0/8 via inet6 fd00:b::1 dev port",
            "-6 route add fd00:2::d4/128 encap seg6local action End.DX4 nh4 0.0.0.0 dev port",
        ],
    );
    net
}

pub(crate) fn nft(net: &Net, rules: &str) {
    nft_in(&net.node, rules);
}

pub(crate) fn nft_in(node: &Namespace, rules: &str) {
    let run = || {
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success());
    };
    node.run(run).unwrap();
}

/// Returns the packet count of a counter in the table.
fn counted(net: &Net, name: &str) -> u64 {
    let list = ["list", "counter", "inet", "firewall", name];
    let run = || Command::new("nft").args(list).output().unwrap();
    let text = String::from_utf8(net.node.run(run).unwrap().stdout).unwrap();
    let packets = text.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
    packets.unwrap().parse().unwrap()
}

/// Returns true if `ping` from left receives an answer to every request.
pub(crate) fn ping(net: &Net, arguments: &str) -> bool {
    let all = format!("-q -c 3 -i 0.05 -W 1 {arguments}");
    let run = || Command::new("ping").args(all.split_whitespace()).output().unwrap();
    net.left.run(run).unwrap().status.success()
}

#[track_caller]
pub(crate) fn expect(net: &Net, arguments: &str, answered: bool) {
    let got = ping(net, arguments);
    let reasons: Vec<_> = net.show()["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|reason| reason["passed"] != 0 || reason["dropped"] != 0)
        .cloned()
        .collect();
    assert_eq!(got, answered, "ping {arguments}: {reasons:#?}");
}

#[test]
fn root_a_mark_chooses_the_chain_that_inner_packets_meet() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    nft(&net, RULES);
    for address in ["10.9.0.1", "fd00:9::1"] {
        expect(&net, address, true);
    }
    for counter in ["in-pre", "in-forward", "in-post"] {
        assert_eq!(counted(&net, counter), 6, "{counter}");
    }
    let function = |net: &Net| {
        let shown = net.show();
        let sids = shown["sids"].as_array().unwrap();
        let sid = sids.iter().find(|sid| sid["action"] == "End.AN.NF").unwrap();
        [&sid["packets"], &sid["returned"]].map(|count| count.as_u64().unwrap())
    };
    assert_eq!(function(&net), [6, 6]);
    expect(&net, "-s 1200 10.9.0.1", false);
    assert_eq!(function(&net), [9, 6]);
    ip(
        &net.left,
        &[
            "-6 route replace fd00:9::/64 encap seg6 mode encap segs fd00:1::f:0:2222,fd00:2::d6 via \
           fd00:a::1 mtu 1500",
        ],
    );
    expect(&net, "fd00:9::1", false);
}

#[test]
fn root_a_sid_whose_function_is_replaced_has_no_packets_that_return() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    nft(&net, RULES);
    expect(&net, "10.9.0.1", true);
    let returned = |net: &Net| {
        let shown = net.show();
        let sids = shown["sids"].as_array().unwrap();
        sids.iter().find(|sid| sid["name"] == "fd00:1::f:0:0/112").unwrap()["returned"].clone()
    };
    assert_eq!(returned(&net), 3);
    net.apply(&FILE.replace("End.AN.NF", "End"));
    assert_eq!(returned(&net), serde_json::Value::Null);
    net.apply(FILE);
    assert_eq!(returned(&net), 0, "a counter of its own");
}

/// Two functions of one node, and a function before the node's own End.DX4.
#[test]
fn root_the_next_segment_may_be_the_nodes_own() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(&format!(
        "{FILE}  fd00:1::e:0:0/112: End.AN.NF\n  fd00:1::d4: {{ behavior: End.DX4, next_hop: 0.0.0.0 }}\n"
    ));
    nft(
        &net,
        "table inet both { counter one {}; counter two {}; counter dropped {};
             chain f { type filter hook forward priority filter;
                 meta mark 0x1111 icmp type echo-request counter name one
                 meta mark 0x2222 icmp type echo-request counter name two
                 meta mark 0x2222 ip length > 1000 counter name dropped drop; }; }",
    );
    let packets = |name: &str| {
        let list = ["list", "counter", "inet", "both", name];
        let run = || Command::new("nft").args(list).output().unwrap();
        let text = String::from_utf8(net.node.run(run).unwrap().stdout).unwrap();
        text.contains("packets 3 ")
    };
    let by = |segments: &str| {
        let route = format!(
            "route replace 10.9.0.0/24 encap seg6 mode encap segs {segments} dev port mtu 1500"
        );
        ip(&net.left, &[&route]);
    };
    by("fd00:1::f:0:1111,fd00:1::e:0:2222,fd00:2::d4");
    expect(&net, "10.9.0.1", true);
    assert!(packets("one") && packets("two"));
    expect(&net, "-s 1200 10.9.0.1", false);
    assert!(packets("dropped"));
    ip(&net.node, &["route add 10.9.0.0/24 via inet6 fd00:b::2 dev r"]);
    by("fd00:1::f:0:1111,fd00:1::d4");
    expect(&net, "10.9.0.1", true);
    expect(&net, "-t 2 -s 1400 10.9.0.1", true);
}

#[test]
fn root_inner_packets_leave_as_they_came() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    // Left copies the hop limit of its IPv6 packets to the outer header, which passes a router.
    for (least, address) in [(1, "10.9.0.1"), (2, "fd00:9::1")] {
        for ttl in [least, 2, 64, 254, 255] {
            expect(&net, &format!("-t {ttl} {address}"), true);
        }
    }
    expect(&net, "-Q 3 -s 1400 10.9.0.1", true);
}

#[test]
fn root_masquerade_and_its_way_back() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    nft(
        &net,
        "table ip nat { chain post { type nat hook postrouting priority srcnat;
             meta mark 0x1111 snat to 10.7.7.7; }; }",
    );
    expect(&net, "10.9.0.1", true);
}

#[test]
fn root_a_tenants_address_may_be_the_nodes_own() {
    let mut net = function_net();
    ip(&net.node, &["addr add 10.9.0.1/32 dev lo"]);
    // For the answers of right, which have this address as their source.
    let accept = || netlink::sysctl::write("ipv4/conf/r/accept_local", "1").unwrap();
    net.node.run(accept).unwrap();
    net.start(&[]);
    net.apply(FILE);
    nft(
        &net,
        "table ip guard { chain in { type filter hook input priority filter; \
             icmp type echo-request drop; }; }",
    );
    expect(&net, "10.9.0.1", true);
}

#[test]
fn root_packets_lost_in_a_function_are_counted_as_dropped() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    // The rules stay active without the daemon.
    nft(
        &net,
        "table ip f { chain f { type filter hook forward priority filter; ip ttl 9 drop; }; }",
    );
    net.kill();
    assert!(ping(&net, "-t 8 10.9.0.1"));
    assert!(!ping(&net, "-t 9 10.9.0.1"));
    // Without the programs nothing passes.
    net.start(&[]);
    net.kaido.ok(&["dataplane", "detach"]);
    assert!(!ping(&net, "10.9.0.1"));
    let route = show(&net.node, "-6 route show fd00:1::f:0:0/112");
    assert_eq!(route, "", "{route}");
    assert!(!show(&net.node, "rule").contains("kaido-in"));
    assert!(!show(&net.node, "link").contains("kaido-in"));
}

/// Returns the number of bytes of a stream from left that reach right unchanged.
pub(crate) fn stream(net: &Net, to: &str, bytes: usize) -> usize {
    let listening = net.right.run(|| TcpListener::bind(to).unwrap()).unwrap();
    let mut sending = net.left.run(|| TcpStream::connect(to).unwrap()).unwrap();
    let (mut receiving, _) = listening.accept().unwrap();
    let chunk: Vec<u8> =
        (0..1 << 16_u32).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..bytes / chunk.len() {
                sending.write_all(&chunk).unwrap();
            }
            sending.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = vec![0; chunk.len()];
        let mut right = 0;
        while receiving.read_exact(&mut received).is_ok() && received == chunk {
            right += received.len();
        }
        right
    })
}

#[test]
fn root_a_stream_passes_a_stateful_ruleset_whole() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    nft(
        &net,
        "table inet state { chain f { type filter hook forward priority filter; policy drop;
             ct state established,related accept
             tcp dport 7001 ct state new accept; }; }",
    );
    let bytes = 64 << 20;
    for to in ["10.9.0.1:7001", "[fd00:9::1]:7001"] {
        let started = std::time::Instant::now();
        assert_eq!(stream(&net, to, bytes), bytes, "{to}");
        println!("{to}: {:.0} Mbit/s", bytes as f64 * 8e-6 / started.elapsed().as_secs_f64());
    }
    expect(&net, "10.9.0.1", false);
}

#[test]
fn root_settings_that_drop_inner_packets_are_refused() {
    let mut net = function_net();
    net.start(&[]);
    for (key, bad, good) in [
        ("ipv4/conf/all/rp_filter", "1", "0"),
        ("ipv4/ip_early_demux", "1", "0"),
        ("ipv6/conf/all/forwarding", "0", "1"),
    ] {
        let set = |value| net.node.run(|| netlink::sysctl::write(key, value).unwrap()).unwrap();
        set(bad);
        let file = net.kaido.file("dataplane.yaml", FILE);
        let said = net.kaido.run(&["dataplane", "apply", &file]);
        assert_ne!(said.code, Some(0));
        let wanted = format!("net.{}={good}, but it is {bad}", key.replace('/', "."));
        assert!(said.stderr.contains(&wanted), "{}", said.stderr);
        assert!(!show(&net.node, "link").contains("kaido-in"));
        set(good);
    }
    net.apply(FILE);
    assert!(ping(&net, "10.9.0.1"));
    net.apply("ports: { l: {}, r: {} }\n");
    assert!(!show(&net.node, "link").contains("kaido-in"));
    assert!(!show(&net.node, "rule").contains("kaido-in"));
}

#[test]
fn root_a_function_that_the_kernel_has_another_way_for_is_refused() {
    let mut net = function_net();
    net.start(&[]);
    for (add, delete, what) in [
        (
            "-6 route add fd00:1::f:0:0/112 via fd00:b::2",
            "-6 route del fd00:1::f:0:0/112 via fd00:b::2",
            "a route to fd00:1::f:0:0/112",
        ),
        (
            "-6 addr add fd00:1::f:0:1111/128 dev r nodad",
            "-6 addr del fd00:1::f:0:1111/128 dev r",
            "this node's address fd00:1::f:0:1111",
        ),
    ] {
        ip(&net.node, &[add]);
        let file = net.kaido.file("dataplane.yaml", FILE);
        net.kaido.run(&["dataplane", "apply", &file]).failed(2, &["fd00:1::f:0:0/112", what]);
        assert!(!show(&net.node, "link").contains("kaido-in"));
        ip(&net.node, &[delete]);
    }
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
}

/// Neither the loss of the path nor a predecessor's leftover path lets a packet bypass the rules.
#[test]
fn root_a_way_that_is_lost_is_closed_and_comes_back() {
    let mut net = function_net();
    ip(&net.node, &["route add 10.9.0.0/24 via inet6 fd00:b::2 dev r"]);
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    for line in ["link set kaido-out down", "rule del pref 0 iif kaido-in"] {
        ip(&net.node, &[line]);
        // Meanwhile no answer comes through the main table.
        let answers = || {
            let answers = ping(&net, "10.9.0.1");
            assert!(!answers || show(&net.node, "-4 rule").contains("iif kaido-in"));
            answers.then_some(())
        };
        until(Duration::from_secs(10), answers, || line.into());
    }
    net.kill();
    ip(&net.node, &["link set kaido-out down", "link set kaido-out up"]);
    // The main table has a route.
    assert!(!ping(&net, "10.9.0.1"));
    // If the first change of a daemon fails, the existing state stays.
    ip(&net.node, &["link set kaido-out down"]);
    let early_demux = |net: &Net, on| {
        let write = || netlink::sysctl::write("ipv4/ip_early_demux", on).unwrap();
        net.node.run(write).unwrap();
    };
    early_demux(&net, "1");
    assert_ne!(crate::directory::run(&net, &net.node, &[]).code, Some(0));
    assert!(show(&net.node, "link").contains("kaido-in"));
    early_demux(&net, "0");
    net.start(&[]);
    expect(&net, "10.9.0.1", true);
}
