//! The kernel processes packets of a file's own SIDs and policies that XDP leaves to it.

use std::process::Command;
use std::time::Duration;

use testkit::{Tap, pause, until};
use wire::{Ethernet, Ipv4, Ipv6, ethertype, protocol};

use crate::net::{Net, ip, show};

/// Left is a tenant of the node; a policy leads to right.
const FILE: &str = "\
source: \"fd00:1::\"
locators: [\"fd00:1::/48\"]
ports: { l: {tenant: blue}, r: {} }
tenants:
  blue:
    routes:
      10.9.0.0/24: [fd00:2::d4]
      fd00:99::/64: [fd00:2::d6]
sids:
  fd00:1::e: End
";

fn net() -> Net {
    let net = Net::new();
    let sysctls = || {
        for (key, value) in
            [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")]
        {
            netlink::sysctl::write(&format!("ipv4/{key}"), value).unwrap();
        }
    };
    net.node.run(sysctls).unwrap();
    net.right.run(sysctls).unwrap();
    ip(&net.left, &["addr add 10.1.0.2/24 dev port", "route add default via 10.1.0.1"]);
    ip(
        &net.node,
        &[
            "addr add 10.1.0.1/24 dev l",
            // No room for an outer header around 1500 bytes.
            "link set dev r mtu 1500",
        ],
    );
    ip(
        &net.right,
        &[
            "addr add 10.9.0.1/32 dev lo",
            "addr add fd00:99::1/128 dev lo",
            "route add 10.1.0.0/24 via inet6 fd00:b::1 dev port",
            "-6 route add fd00:2::d4/128 encap seg6local action End.DX4 nh4 0.0.0.0 dev port",
        ],
    );
    net
}

/// Returns the output of `ping` from left.
fn ping(net: &Net, arguments: &str) -> String {
    let run = || Command::new("ping").args(arguments.split_whitespace()).output().unwrap();
    let output = net.left.run(run).unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[track_caller]
fn expect(net: &Net, arguments: &str, what: &str) {
    let said = ping(net, arguments);
    let shown = net.show();
    let reasons: Vec<_> = shown["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|reason| reason["passed"] != 0 || reason["dropped"] != 0)
        .collect();
    assert!(said.contains(what), "ping {arguments}:\n{said}\n{reasons:#?}");
}

#[test]
fn root_the_kernel_forwards_packets_that_xdp_passes() {
    let mut net = net();
    net.start(&[]);
    net.apply(FILE);

    // No neighbor is known yet: the first packet waits in the kernel.
    ip(&net.node, &["neigh flush dev r"]);
    expect(&net, "-c 3 -i 0.05 -W 2 10.9.0.1", " 0% packet loss");
    expect(&net, "-c 3 -i 0.05 -W 2 fd00:99::1", " 0% packet loss");

    // Path MTU discovery: 1500 less an outer header without an SRH. The kernel does not send this
    // error: it would send it to the outer source.
    let sized = |size| format!("-M do -s {size} -c 1 -W 2");
    expect(&net, &format!("{} 10.9.0.1", sized(1472)), "mtu = 1460");
    expect(&net, &format!("{} 10.9.0.1", sized(1460 - 28)), " 0% packet loss");
    expect(&net, &format!("{} fd00:99::1", sized(1452)), "mtu=1460");
    expect(&net, &format!("{} fd00:99::1", sized(1460 - 48)), " 0% packet loss");

    let shown = net.show();
    for reason in shown["reasons"].as_array().unwrap() {
        let told = if reason["reason"] == "too-big-reported" { 2 } else { 0 };
        assert_eq!(reason["dropped"], told, "{reason}");
    }

    net.kaido.ok(&["dataplane", "detach"]);
    for family in ["-4", "-6"] {
        assert_eq!(show(&net.node, &format!("{family} route show table all proto 76")), "");
        assert!(!show(&net.node, &format!("{family} rule")).contains("proto 76"));
    }
    assert!(show(&net.node, "sr tunsrc show").contains("addr ::\n"));
    net.end();
}

#[test]
fn root_a_tenants_policies_apply_to_its_packets_only() {
    let mut net = net();
    net.start(&[]);
    let plan = net.apply(FILE);
    assert_eq!(plan["more"], 0, "{plan}");
    // The node's own packets, and packets from another port.
    for from in ["", " iif r from 10.7.0.1"] {
        let found = show(&net.node, &format!("route get 10.9.0.1{from}"));
        assert!(!found.contains("seg6"), "{found}");
    }
    // A tenant cannot reach a SID, in the kernel either.
    let get = "-6 route get fd00:1::e from fd00:a::2";
    assert!(show(&net.node, &format!("{get} iif r")).contains("seg6local"));
    let found = show(&net.node, &format!("{get} iif l"));
    assert!(!found.contains("seg6local"), "{found}");
    // Nor a SID that was added to the kernel from elsewhere, outside the locators.
    ip(&net.node, &["-6 route add fd00:5::d6/128 encap seg6local action End.DT6 table 254 dev r"]);
    let get = "-6 route get fd00:5::d6 from fd00:a::2";
    until(
        Duration::from_secs(5),
        || (!show(&net.node, &format!("{get} iif l")).contains("seg6local")).then_some(()),
        || show(&net.node, "-6 route show table all"),
    );
    assert!(show(&net.node, &format!("{get} iif r")).contains("seg6local"));
    let found = show(&net.node, "route get 10.9.0.1 iif l from 10.1.0.2");
    assert!(found.contains("fd00:2::d4"), "{found}");
    // A tenant's default route would match the outer packets, so only XDP has it.
    let text = FILE.replace("fd00:99::/64", "::/0");
    net.apply(&text);
    assert!(!show(&net.node, "-6 route show table all proto 76").contains("default"));
    expect(&net, "-c 3 -i 0.05 -W 2 fd00:99::1", " 0% packet loss");
    // The kernel's route is removed with the SID.
    assert!(show(&net.node, "-6 route").contains("fd00:1::e"));
    net.apply(&text.replace("  fd00:1::e: End\n", "  fd00:1::f: End\n"));
    assert!(!show(&net.node, "-6 route").contains("fd00:1::e"));
    // A route that is removed from outside is restored.
    ip(&net.node, &["-6 route flush table main proto 76"]);
    until(
        Duration::from_secs(5),
        || show(&net.node, "-6 route").contains("fd00:1::f").then_some(()),
        || show(&net.node, "-6 route"),
    );
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}

/// For End.DT4 the kernel looks up a table only through its VRF: it has no such SID here, and does
/// not resolve the neighbor.
#[test]
fn root_a_neighbor_that_only_xdp_needs_is_asked_for() {
    let mut net = net();
    ip(&net.node, &["addr add 10.7.0.1/24 dev r", "route add 10.7.0.0/24 dev r table 100"]);
    ip(&net.right, &["addr add 10.7.0.2/24 dev port"]);
    ip(
        &net.left,
        &[
            "route add 10.7.0.2/32 encap seg6 mode encap segs fd00:1::d4 via inet6 fd00:a::1 dev port",
        ],
    );
    net.start(&[]);
    net.apply(
        "locators: [\"fd00:1::/48\"]\nports: { l: {}, r: {} }\n\
         sids: { fd00:1::d4: {behavior: End.DT4, table: 100} }\n",
    );
    assert!(show(&net.node, "neigh show 10.7.0.2").is_empty());
    // The first packets are dropped while the daemon resolves the neighbor.
    expect(&net, "-c 20 -i 0.1 -W 1 10.7.0.2", "bytes from 10.7.0.2");
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}

/// Packets to absent hosts behind one interface do not keep a neighbor on another one from being
/// resolved.
#[test]
fn root_absent_hosts_on_one_interface_delay_no_neighbor_on_another() {
    let mut net = net();
    ip(
        &net.node,
        &[
            "addr add 10.7.0.1/16 dev l",
            "addr add 10.8.0.1/24 dev r",
            "route add 10.7.0.0/16 dev l table 100",
            "route add 10.8.0.0/24 dev r table 101",
        ],
    );
    ip(&net.right, &["addr add 10.8.0.2/24 dev port"]);
    let route = "encap seg6 mode encap segs fd00:1::d5 via inet6 fd00:a::1 dev port";
    ip(&net.left, &[&format!("route add 10.8.0.2/32 {route}")]);
    net.start(&[]);
    net.apply(
        "locators: [\"fd00:1::/48\"]\nports: { l: {}, r: {} }\nsids:\n  \
         fd00:1::d4: {behavior: End.DT4, table: 100}\n  \
         fd00:1::d5: {behavior: End.DT4, table: 101}\n",
    );
    let [dst, src] = crate::edge::stations(&net.node, &net.left);
    let tap = net.left.run(|| Tap::open("port")).unwrap();
    let absent = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let host = [10, 7, high, low].into();
        let inner = Ipv4::new([10, 9, 0, 9].into(), host, protocol::UDP).around(&[0; 8]).unwrap();
        let [from, sid] = ["fd00:a::2", "fd00:1::d4"].map(|address| address.parse().unwrap());
        let outer = Ipv6::new(from, sid, protocol::IPV4).around(&inner).unwrap();
        let mut frame = Vec::new();
        Ethernet { dst, src, ethertype: ethertype::IPV6 }.emit(&mut frame);
        [frame, outer].concat()
    };
    std::thread::scope(|scope| {
        let pinging = scope.spawn(|| expect(&net, "-c 6 -i 0.2 -W 1 10.8.0.2", "bytes from"));
        // 40,000 packets a second: the ping is a small part of the packets of each tick.
        let mut hosts = (0x100..=0x1ff).cycle();
        while !pinging.is_finished() {
            hosts.by_ref().take(40).for_each(|host| tap.send(&absent(host)));
            pause(Duration::from_millis(1));
        }
        pinging.join().expect("the neighbor is resolved");
    });
    net.kaido.ok(&["dataplane", "detach"]);
    net.end();
}
