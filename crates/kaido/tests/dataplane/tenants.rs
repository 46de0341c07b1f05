//! Two tenants with the same addresses, each in a VRF of the kernel and a VLAN of one port:
//!
//! ```text
//!  far: red, blue (VRFs)  port --- l | node: red, blue | r --- port.10 red's host
//!  10.9.0.1 in each                                        \-- port.20 blue's host, both 10.1.0.2
//! ```
//! The kernel has all of it as routes; the daemon imports them.

use std::process::Command;
use std::time::Duration;

use netlink::{Namespace, Offload, set_offload};
use testkit::feature::{VLAN, VRF};
use testkit::until;

use crate::net::{FILE, Net, Resident, ip};

const TENANTS: [(&str, u32, u16, &str); 2] = [("red", 100, 10, "a"), ("blue", 200, 20, "b")];

/// Reports the kernel features that are missing; creates nothing.
fn has_what_it_takes(namespace: &Namespace) -> bool {
    let tried = |line: &str| {
        let run = || Command::new("ip").args(line.split(' ')).output().unwrap();
        let output = namespace.run(run).unwrap();
        output.status.success().then_some(()).ok_or(output.stderr)
    };
    let why = |said: Vec<u8>| String::from_utf8_lossy(&said).trim().to_owned();
    if let Err(said) = tried("link add try type vrf table 9") {
        VRF.is_missing(why(said));
        return false;
    }
    if let Err(said) = tried("link add link port name port.9 type vlan id 9") {
        VLAN.is_missing(why(said));
        return false;
    }
    true
}

fn lines(namespace: &Namespace, lines: &[String]) {
    ip(namespace, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Configures the tenants on the node, the far end and the hosts; returns the hosts.
fn add_tenants(net: &Net) -> [Namespace; 2] {
    for namespace in [&net.node, &net.left] {
        let set = || {
            netlink::sysctl::write("vrf/strict_mode", "1").unwrap();
            netlink::sysctl::write("ipv4/ip_forward", "1").unwrap();
        };
        namespace.run(set).unwrap();
        ip(namespace, &["sr tunsrc set fd00:1::1"]);
    }
    // A veth keeps VLAN tags outside the frame, where XDP does not see them.
    let tags = || {
        let off = Command::new("ethtool").args(["-K", "port", "txvlan", "off"]).status();
        assert!(off.unwrap().success());
        set_offload("port", Offload::Gro, true).unwrap();
    };
    net.right.run(tags).unwrap();
    ip(&net.left, &["-6 route add fd00:1::/48 via fd00:a::1"]);
    ip(&net.node, &["-6 route add fd00:3::/48 via fd00:a::2"]);
    TENANTS.map(|(name, table, vlan, sid)| {
        let vrf = [
            format!("link add {name} type vrf table {table}"),
            format!("link set dev {name} up"),
            format!("route add unreachable default metric 4278198272 table {table}"),
        ];
        lines(&net.node, &vrf);
        lines(
            &net.node,
            &[
                format!("link add link r name r.{vlan} type vlan id {vlan}"),
                format!("link set dev r.{vlan} master {name} up"),
                format!("addr add 10.1.0.1/24 dev r.{vlan}"),
                format!(
                    "-6 route add fd00:1::{sid}/128 encap seg6local action End.DT4 vrftable \
                     {table} dev l"
                ),
                format!(
                    "route add 10.9.0.0/16 encap seg6 mode encap segs fd00:3::{sid} dev l table \
                     {table}"
                ),
            ],
        );
        lines(&net.left, &vrf);
        lines(
            &net.left,
            &[
                format!("addr add 10.9.0.1/32 dev {name}"),
                format!(
                    "-6 route add fd00:3::{sid}/128 encap seg6local action End.DT4 vrftable \
                     {table} dev port"
                ),
                format!(
                    "route add 10.1.0.0/24 encap seg6 mode encap segs fd00:1::{sid} dev port \
                     table {table}"
                ),
            ],
        );
        let host = Namespace::unnamed().unwrap();
        lines(&net.right, &[format!("link add link port name port.{vlan} type vlan id {vlan}")]);
        let there = Resident::new(&host);
        lines(&net.right, &[format!("link set dev port.{vlan} netns {}", there.id())]);
        lines(
            &host,
            &[
                format!("link set dev port.{vlan} mtu 1500 up"),
                format!("addr add 10.1.0.2/24 dev port.{vlan}"),
                "route add default via 10.1.0.1".into(),
            ],
        );
        host
    })
}

fn reaches(host: &Namespace, address: &str, count: u32) -> bool {
    let count = count.to_string();
    let run = || {
        let mut ping = Command::new("ping");
        ping.args(["-q", "-c", &count, "-i", "0.05", "-W", "2", address]).output().unwrap()
    };
    host.run(run).unwrap().status.success()
}

#[test]
fn root_tenants_with_the_same_addresses_cannot_reach_each_other() {
    let mut net = Net::new();
    if !has_what_it_takes(&net.right) {
        return;
    }
    let [red, blue] = add_tenants(&net);
    ip(&net.left, &["addr add 10.9.0.9/32 dev blue"]);
    for host in [&red, &blue] {
        let way = || reaches(host, "10.9.0.1", 1).then_some(());
        until(Duration::from_secs(10), way, || "the kernel alone has no way".into());
    }

    net.start(&[]);
    net.apply(FILE);
    let shown = net.show();
    assert_eq!(shown["left"].as_array().unwrap().len(), 0, "{shown}");
    // SIDs are IPv6, for which red's table has no default entry: a tenant of the file with this VRF
    // is refused.
    let file = net.kaido.file("vrf.yaml", &format!("{FILE}tenants: {{ red: {{ vrf: red }} }}\n"));
    let said = net.kaido.run(&["dataplane", "plan", &file]);
    said.failed(2, &["without a route in its VRF's table 100", "`falls_through: true`"]);
    let policy = |table: u32| {
        let shown = net.show();
        let policies = shown["policies"].as_array().unwrap().clone();
        let name = format!("table {table} 10.9.0.0/16");
        let found = policies.iter().find(|entry| entry["name"] == name.as_str());
        found.unwrap_or_else(|| panic!("no {name}: {shown}"))["packets"].as_u64().unwrap()
    };
    let counts = || {
        let sid = |sid: &str| net.packets(&format!("fd00:1::{sid}/128")).unwrap();
        [policy(100), sid("a"), policy(200), sid("b")]
    };
    // Both directions by XDP: each packet counts for its own tenant only.
    for (host, expected) in [(&red, [5, 5, 0, 0]), (&blue, [0, 0, 5, 5])] {
        until(
            Duration::from_secs(10),
            || {
                let before = counts();
                assert!(reaches(host, "10.9.0.1", 5));
                let now = counts();
                let grown: Vec<u64> = before.iter().zip(now).map(|(b, n)| n - b).collect();
                (grown == expected).then_some(())
            },
            || format!("{:?} {}", counts(), net.show()),
        );
    }

    // Red does not reach an address that only blue has.
    assert!(reaches(&blue, "10.9.0.9", 3));
    assert!(!reaches(&red, "10.9.0.9", 3));

    // Nor with blue's SID in a packet of its own.
    let before = counts();
    for (namespace, line) in [
        (&net.node, "-6 route add unreachable default metric 4278198272 table 100"),
        (&net.node, "addr add fd00:77::1/64 dev r.10 nodad"),
        (&red, "addr add fd00:77::2/64 dev port.10 nodad"),
        (&red, "-6 route add fd00:1::/48 via fd00:77::1"),
        (&red, "route add 10.9.0.9/32 encap seg6 mode encap segs fd00:1::b dev port.10"),
        (&red, "sr tunsrc set fd00:77::2"),
    ] {
        ip(namespace, &[line]);
    }
    assert!(!reaches(&red, "10.9.0.9", 3));
    assert_eq!(counts()[2..], before[2..], "red's packets count as blue's");
}
