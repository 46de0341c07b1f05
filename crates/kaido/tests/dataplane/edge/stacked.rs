//! Interfaces on top of an edge port or a tenant's port, which receive frames to MAC addresses of
//! their own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::time::Duration;

use wire::{Ipv6, Mac, Udp, ethertype, protocol};

use super::{Bed, SOURCE, plain, to_sid, with_priority, with_tenant};
use crate::net::{TIMEOUT, ip, show};

/// The MAC address of the interface `over` on the node's port `l`.
const OVER: Mac = Mac([2, 0, 0, 0, 0, 0x55]);

fn to_macvlan(frame: &mut Vec<u8>) {
    frame.splice(..6, OVER.0);
}

/// The program does not inspect a priority tag, so that only rules drop such a packet.
fn to_macvlan_with_priority(frame: &mut Vec<u8>) {
    to_macvlan(frame);
    with_priority(frame);
}

impl Bed {
    /// Creates a macvlan on the node's port, and returns when its packets are forwarded.
    fn add_macvlan(&mut self) {
        let add = format!("link add link l name over address {OVER} type macvlan");
        ip(&self.net.node, &[&add, "link set dev over up"]);
        let mut passes =
            || self.passes_as(|mark| plain(SOURCE, "fd00:b::2", mark), to_macvlan).then_some(());
        testkit::until(Duration::from_secs(10), &mut passes, || "not up".into());
    }

    /// Creates a VXLAN of the node, to which the left host can send.
    fn add_vxlan(&self) {
        let add = format!(
            "link add over address {OVER} type vxlan id 9 local fd00:a::1 remote {SOURCE} dev l dstport 4789 \
             udp6zerocsumrx"
        );
        ip(&self.net.node, &[&add, "link set dev over up"]);
    }

    /// Waits until the data plane has seen the interface.
    fn until_rules_name_it(&self) {
        let rules = || show(&self.net.node, "-6 rule");
        let has = || rules().contains("iif over").then_some(());
        testkit::until(Duration::from_secs(10), has, rules);
    }

    fn reaches_sid_through_macvlan(&mut self) -> [bool; 2] {
        let sid = |mark: &str| to_sid(SOURCE, mark);
        [self.passes_as(sid, to_macvlan), self.passes_as(sid, to_macvlan_with_priority)]
    }
}

#[test]
fn root_no_sid_is_reached_through_a_macvlan_on_an_edge_port() {
    let mut bed = Bed::new();
    bed.add_macvlan();
    for dataplane in ["xdp", "kernel"] {
        let which = format!("dataplane: {dataplane}\n");
        bed.apply("{ l: {}, r: {} }", &which);
        assert_eq!(bed.reaches_sid_through_macvlan(), [true; 2], "{dataplane}: nothing to test");
        // Of two interfaces, one that exists and one that is created later.
        for is_new in [false, true] {
            if is_new {
                ip(&bed.net.node, &["link del dev over"]);
            }
            bed.apply("{ l: { sids: false }, r: {} }", &which);
            if is_new {
                bed.add_macvlan();
                bed.until_rules_name_it();
            }
            let before = bed.dropped("edge");
            assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2], "{dataplane}, {is_new}");
            let grown = bed.dropped("edge") - before;
            assert_eq!(grown, if dataplane == "xdp" { 2 } else { 0 }, "only XDP counts");
            let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
            assert!(bed.passes_as(other, to_macvlan), "{dataplane}: it stays an interface");
        }
    }
}

/// The program drops them before the data plane has seen the interface.
#[test]
fn root_no_sid_is_reached_through_a_macvlan_that_is_new_on_an_edge_port() {
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "");
    // No daemon adds rules.
    bed.net.kill();
    bed.add_macvlan();
    assert!(!show(&bed.net.node, "-6 rule").contains("iif over"));
    assert!(!bed.passes_as(|mark| to_sid(SOURCE, mark), to_macvlan));
}

#[test]
fn root_no_sid_is_reached_through_a_macvlan_on_a_tenants_port() {
    let mut bed = Bed::new();
    let domain = "sources: [\"fd00:5::/48\", \"fd00:a::1/128\"]";
    let to_other = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
    for dataplane in ["xdp", "kernel"] {
        bed.apply("{ l: {}, r: {} }", &format!("dataplane: {dataplane}\n"));
        bed.add_macvlan();
        assert_eq!(bed.reaches_sid_through_macvlan(), [true; 2], "{dataplane}: nothing to test");
        assert!(bed.passes_as(to_other, to_macvlan), "{dataplane}: nothing to test");
        for is_new in [false, true] {
            if is_new {
                ip(&bed.net.node, &["link del dev over"]);
            }
            // Without `sources`, from which alone SIDs could be reached.
            let port = "{ l: { tenant: blue }, r: {} }";
            bed.apply(port, &with_tenant(dataplane, "", ""));
            if is_new {
                bed.add_macvlan();
                bed.until_rules_name_it();
            }
            assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2], "{dataplane}, {is_new}");
            bed.apply(port, &with_tenant(dataplane, domain, ""));
            assert!(!bed.passes_as(to_other, to_macvlan), "{dataplane}: another node's SID");
        }
        ip(&bed.net.node, &["link del dev over"]);
    }
}

impl Bed {
    /// Makes a bridge take the node's port `l`.
    fn bridge_takes_port(&self) {
        let add = format!("link add name over address {OVER} type bridge");
        ip(&self.net.node, &[&add, "link set dev over up", "link set dev l master over"]);
    }
}

/// `apply` refuses such a port. A bridge that takes it later has its frames.
#[test]
fn root_no_sid_is_reached_through_a_bridge_that_takes_an_edge_port() {
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "");
    bed.bridge_takes_port();
    bed.until_rules_name_it();
    let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
    assert!(bed.passes_as(other, to_macvlan), "nothing to test");
    assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2]);
}

/// The kernel alone cannot have a tenant's port in a bridge: that state is refused.
#[test]
fn root_no_sid_is_reached_through_a_bridge_that_takes_a_tenants_port() {
    let mut bed = Bed::new();
    let port = "{ l: { tenant: blue }, r: {} }";
    for dataplane in ["xdp", "kernel"] {
        bed.apply(port, &with_tenant(dataplane, "", ""));
        bed.bridge_takes_port();
        bed.until_rules_name_it();
        let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
        assert!(bed.passes_as(other, to_macvlan), "{dataplane}: nothing to test");
        assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2], "{dataplane}");
        if dataplane == "kernel" {
            let says = |log: String| {
                log.contains("the data plane stays as it is: ") && log.contains("bridge")
            };
            // At the second attempt.
            testkit::until(TIMEOUT, || says(bed.net.log()).then_some(()), || bed.net.log());
        }
        ip(&bed.net.node, &["link del dev over"]);
        bed.apply("{ l: {}, r: {} }", "");
    }
}

/// An edge port's bridge leads to another interface of the node by a veth pair.
#[test]
fn root_no_sid_is_reached_through_a_veth_from_the_bridge_of_an_edge_port() {
    let mut bed = Bed::new();
    let veth = format!("link add over address {OVER} type veth peer name inside");
    let lines = [
        &veth,
        "link set dev over up",
        "link set dev inside up",
        "link add name br type bridge",
        "link set dev br up",
        "link set dev inside master br",
        "link set dev l master br",
    ];
    bed.apply("{ l: { sids: false }, r: {} }", "");
    ip(&bed.net.node, &lines);
    bed.until_rules_name_it();
    let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
    assert!(bed.passes_as(other, to_macvlan), "nothing to test");
    assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2]);
}

/// Puts a frame into VXLAN 9, from the left host to the node, at the MAC address of `over`.
fn to_vxlan(frame: &mut Vec<u8>) {
    let ethernet = frame[..12].to_vec();
    to_macvlan(frame);
    let vxlan = [&[8, 0, 0, 0, 0, 0, 9, 0][..], frame].concat();
    let udp = Udp::new(4789, 4789).around(&vxlan).unwrap();
    let [source, to] = [SOURCE, "fd00:a::1"].map(|address| address.parse().unwrap());
    let outer = Ipv6::new(source, to, protocol::UDP).around(&udp).unwrap();
    *frame = [&ethernet[..], &ethertype::IPV6.to_be_bytes(), &outer].concat();
}

/// From an edge, anybody can send packets through a tunnel of the node.
#[test]
fn root_no_sid_is_reached_through_a_tunnel_from_an_edge_port() {
    let mut bed = Bed::new();
    bed.add_vxlan();
    let sid = |mark: &str| to_sid(SOURCE, mark);
    for dataplane in ["xdp", "kernel"] {
        let which = format!("dataplane: {dataplane}\n");
        bed.apply("{ l: {}, r: {} }", &which);
        let passes = || bed.passes_as(sid, to_vxlan).then_some(());
        testkit::until(Duration::from_secs(10), passes, || format!("{dataplane}: nothing to test"));
        for (sources, source) in [("", SOURCE), ("sources: [\"fd00:5::/48\"]\n", "fd00:5::1")] {
            bed.apply("{ l: { sids: false }, r: {} }", &format!("{which}{sources}"));
            assert!(
                !bed.passes_as(|mark| to_sid(source, mark), to_vxlan),
                "{dataplane}, {sources}"
            );
        }
        bed.apply("{ l: { tenant: blue }, r: {} }", &with_tenant(dataplane, "", ""));
        assert!(!bed.passes_as(sid, to_vxlan), "{dataplane}: from a tenant");
    }
}

/// The place where a checksum is to be written survives the decapsulation, and the filter of the port sees
/// the outer addresses alone.
#[test]
fn root_no_checksum_is_written_into_addresses_within_a_tunnel() {
    let mut bed = Bed::new();
    bed.add_vxlan();
    bed.apply("{ l: { sids: false }, r: {} }", "");
    let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
    let passes = || bed.passes_as(other, to_vxlan).then_some(());
    testkit::until(Duration::from_secs(10), passes, || "nothing to test".into());
    let offload = || netlink::set_offload("port", netlink::Offload::TxChecksum, true).unwrap();
    bed.net.left.run(offload).unwrap();
    let own = bed.net.left.run(|| testkit::Tap::open("port")).unwrap();
    let mut frame = bed.frame(&other("sum"));
    to_vxlan(&mut frame);
    // Ethernet, IPv6, UDP and VXLAN, and the inner Ethernet header.
    let inner = 14 + 40 + 8 + 8 + 14;
    let mut dropped = bed.dropped("irregular");
    for (start, is_dropped) in [(inner + 8, true), (inner + 38, true), (inner + 40, false)] {
        own.send_with_checksum(&frame, start, 0);
        // Processed after it.
        assert!(bed.passes_as(other, to_vxlan));
        dropped += u64::from(is_dropped);
        assert_eq!(bed.dropped("irregular"), dropped, "{start}");
    }
}

/// The interfaces on an edge port stay when it moves to another network namespace.
#[test]
fn root_no_sid_is_reached_through_a_macvlan_whose_edge_port_has_moved() {
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "dataplane: kernel\n");
    bed.add_macvlan();
    bed.until_rules_name_it();
    let elsewhere = netlink::Namespace::unnamed().unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&elsewhere));
    let path = format!("/proc/{}/fd/{descriptor}", std::process::id());
    ip(&bed.net.node, &[&format!("link set dev l netns {path}")]);
    ip(&elsewhere, &["link set dev l up"]);
    let shown = || bed.net.log();
    let gone = || bed.net.log().contains("left out until they return: l").then_some(());
    testkit::until(Duration::from_secs(10), gone, shown);
    let sid = |mark: &str| to_sid(SOURCE, mark);
    for dress in [to_macvlan, to_macvlan_with_priority] {
        assert!(!bed.passes_before(sid, dress, to_macvlan));
    }
    // Without the rules it would.
    ip(&bed.net.node, &["-6 rule flush", "-6 rule add pref 32766 lookup main"]);
    assert!(bed.passes_before(sid, to_macvlan, to_macvlan), "nothing to test");
}

/// A rule has the bytes of the name, which need not be text.
#[test]
fn root_no_sid_is_reached_through_a_macvlan_with_any_name() {
    let mut bed = Bed::new();
    bed.add_macvlan();
    let name = OsStr::from_bytes(&[0xff; 15]);
    ip(&bed.net.node, &["link set dev over down"]);
    let rename =
        || Command::new("ip").args(["link", "set", "dev", "over", "name"]).arg(name).status();
    assert!(bed.net.node.run(rename).unwrap().unwrap().success());
    let up = || Command::new("ip").args(["link", "set", "up", "dev"]).arg(name).status();
    assert!(bed.net.node.run(up).unwrap().unwrap().success());
    bed.apply("{ l: {}, r: {} }", "dataplane: kernel\n");
    testkit::until(
        Duration::from_secs(10),
        || (bed.reaches_sid_through_macvlan() == [true; 2]).then_some(()),
        || "nothing to test".into(),
    );
    bed.apply("{ l: { sids: false }, r: {} }", "dataplane: kernel\n");
    assert_eq!(bed.reaches_sid_through_macvlan(), [false; 2], "{}", show(&bed.net.node, "-6 rule"));
}
