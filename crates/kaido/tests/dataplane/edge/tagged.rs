//! Tagged frames of a tenant. The kernel removes tags of VLAN 0 wherever they are, and delivers a
//! frame to the interface of the first other tag, however many tags follow.

use std::process::Command;
use std::time::Duration;

use testkit::feature::VLAN;

use super::{Bed, SOURCE, ipv4, plain, to_sid, with_tenant, with_vlan_5};
use crate::net::{ip, show};

/// Next header of whole frames (RFC 8986 section 10.1).
const ETHERNET: u8 = 143;
const DOMAIN: &str = "sources: [\"fd00:5::/48\", \"fd00:a::1/128\"]";

/// Tags, in the order of the frame, with which the kernel delivers a frame to VLAN 5.
const STACKS: [&[u32]; 6] = [
    &[0x8100_0005, 0x88a8_0000],
    &[0x8100_0005, 0x8100_0000, 0x8100_0000],
    &[0x8100_0005, 0x8100_0000, 0x88a8_0000],
    &[0x8100_0000, 0x8100_0005],
    &[0x88a8_0000, 0x8100_0005],
    &[0x8100_0000, 0x8100_0000, 0x8100_0005],
];

fn tagged(tags: &[u32]) -> impl Fn(&mut Vec<u8>) + '_ {
    move |frame| drop(frame.splice(12..12, tags.iter().flat_map(|tag| tag.to_be_bytes())))
}

impl Bed {
    /// Creates the interface of VLAN 5 on the node's port, and returns true when its packets are
    /// forwarded. Returns false if this kernel has none.
    pub(super) fn add_vlan(&mut self) -> bool {
        let line = ["link", "add", "link", "l", "name", "l5", "type", "vlan", "id", "5"];
        let made = self.net.node.run(|| Command::new("ip").args(line).output().unwrap()).unwrap();
        if !made.status.success() {
            VLAN.is_missing(String::from_utf8_lossy(&made.stderr).trim().to_owned());
            return false;
        }
        ip(&self.net.node, &["link set dev l5 up"]);
        let mut passes =
            || self.passes_as(|mark| plain(SOURCE, "fd00:b::2", mark), with_vlan_5).then_some(());
        testkit::until(Duration::from_secs(10), &mut passes, || "not up".into());
        true
    }
}

#[test]
fn root_a_tenant_sends_from_its_own_addresses_alone_with_any_tags() {
    let mut bed = Bed::new();
    bed.apply("{ l: {}, r: {} }", "");
    if !bed.add_vlan() {
        return;
    }
    for stack in STACKS {
        let open = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
        assert!(bed.passes_as(open, tagged(stack)), "{stack:x?}: nothing to test");
    }
    let tenant = "tenants:\n  red:\n    sources: [10.1.0.0/24, \"fd00:c::/64\"]\n    attachments: [{ port: l, \
                  vlan: 5 }]\n    routes: { 10.9.0.0/16: [\"fd00:2::9\"], \"fd00:9::/32\": [\"fd00:2::9\"] }\n";
    bed.apply("{ l: {}, r: {} }", &format!("source: fd00:a::1\n{DOMAIN}\n{tenant}"));
    assert!(bed.passes_as(|mark| ipv4("10.1.0.2", mark), with_vlan_5));
    assert!(bed.passes_as(|mark| plain("fd00:c::7", "fd00:9::1", mark), with_vlan_5));
    for stack in [&STACKS[..], &[&[0x8100_0005]]].concat() {
        let dress = || tagged(stack);
        assert!(!bed.passes_as(|mark| ipv4("10.7.0.2", mark), dress()), "{stack:x?}");
        let others = |mark: &str| plain("fd00:7::7", "fd00:9::1", mark);
        assert!(!bed.passes_as(others, dress()), "{stack:x?}");
        let of_domain = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
        assert!(!bed.passes_as(of_domain, dress()), "{stack:x?}: another node's SID");
        assert!(!bed.passes_as(|mark| to_sid("fd00:5::1", mark), dress()), "{stack:x?}");
    }
}

/// A tag outside of the frame is invisible to XDP: the frame would look untagged, and those of a
/// trunk reach SIDs.
#[test]
fn root_a_port_leaves_the_tags_of_tenants_in_the_frames() {
    let bed = Bed::new();
    let strips = |name| bed.net.node.run(|| netlink::strips_tags(name).unwrap()).unwrap();
    bed.apply("{ l: {}, r: {} }", "");
    assert!(strips("l"), "the default");
    let attached = "tenants: { red: { table: 9, attachments: [{ port: l, vlan: 5 }] } }\n";
    let warned = bed.apply("{ l: {}, r: {} }", attached);
    assert!(!strips("l") && strips("r"));
    assert!(!warned["warnings"].to_string().contains("takes VLAN tags off"), "{warned}");
    // An administrator can switch it on again.
    let on = || Command::new("ethtool").args(["-K", "l", "rxvlan", "on"]).status().unwrap();
    assert!(bed.net.node.run(on).unwrap().success());
    assert!(bed.net.show()["warnings"].to_string().contains("`l` takes VLAN tags off"));
    let doctor = bed.net.node.run(|| bed.net.kaido.run(&["--json", "doctor"]).stdout).unwrap();
    assert!(doctor.contains("`l` takes VLAN tags off"), "{doctor}");
    bed.apply("{ l: {}, r: {} }", attached);
    assert!(!strips("l"));
}

/// Replaces the destination MAC address.
fn to_mac(mac: u8) -> impl Fn(&mut Vec<u8>) {
    move |frame| drop(frame.splice(..6, [2, 0, 0, 0, 0, mac]))
}

/// The kernel accepts frames of a VLAN to the MAC address of its interface, and with two tags also
/// to that of the interface below.
#[test]
fn root_a_tenant_sends_from_its_own_addresses_alone_to_any_mac_address_of_its_vlan() {
    let mut bed = Bed::new();
    bed.apply("{ l: {}, r: {} }", "");
    if !bed.add_vlan() {
        return;
    }
    let lines = [
        "link set dev l5 address 02:00:00:00:00:55",
        "link add link l name l6 address 02:00:00:00:00:66 type vlan proto 802.1ad id 6",
        "link add link l6 name l6.7 address 02:00:00:00:00:67 type vlan id 7",
        "link set dev l6 up",
        "link set dev l6.7 up",
    ];
    ip(&bed.net.node, &lines);
    const TWO: &[u32] = &[0x88a8_0006, 0x8100_0007];
    let ways: [(&[u32], u8); 3] = [(&[0x8100_0005], 0x55), (TWO, 0x66), (TWO, 0x67)];
    let dress = |(tags, mac): (&'static [u32], u8)| {
        move |frame: &mut Vec<u8>| {
            tagged(tags)(frame);
            to_mac(mac)(frame);
        }
    };
    let open = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
    for way in ways {
        let mut passes = || bed.passes_as(open, dress(way)).then_some(());
        testkit::until(Duration::from_secs(10), &mut passes, || format!("{way:x?}: not up"));
    }
    let tenant = "tenants:\n  red:\n    sources: [10.1.0.0/24, \"fd00:c::/64\"]\n    attachments: [{ port: l, \
                  vlan: 5 }, { port: l, vlan: 6, inner: 7 }]\n    routes: { 10.9.0.0/16: [\"fd00:2::9\"], \
                  \"fd00:9::/32\": [\"fd00:2::9\"] }\n";
    bed.apply("{ l: {}, r: {} }", &format!("source: fd00:a::1\n{DOMAIN}\n{tenant}"));
    // The last one shows that changes are followed.
    for (round, ways) in [(1, &ways[..]), (2, &[(&[0x8100_0005], 0x56)])] {
        if round == 2 {
            ip(&bed.net.node, &["link set dev l5 address 02:00:00:00:00:56"]);
            let count = |bed: &Bed| bed.dropped("tenant-source");
            let mut is_checked = || {
                let before = count(&bed);
                bed.passes_as(|mark| ipv4("10.7.0.2", mark), dress(ways[0]));
                (count(&bed) > before).then_some(())
            };
            testkit::until(Duration::from_secs(10), &mut is_checked, || "unchecked".into());
        }
        for way in ways {
            let dress = || dress(*way);
            let before = bed.dropped("tenant-source");
            assert!(!bed.passes_as(|mark| ipv4("10.7.0.2", mark), dress()), "{way:x?}");
            let others = |mark: &str| plain("fd00:7::7", "fd00:9::1", mark);
            assert!(!bed.passes_as(others, dress()), "{way:x?}");
            let nodes = |mark: &str| plain("fd00:a::1", "fd00:2::9", mark);
            assert!(!bed.passes_as(nodes, dress()), "{way:x?}: another node's SID");
            assert_eq!(bed.dropped("tenant-source") - before, 3, "{way:x?}");
            assert!(bed.passes_as(|mark| ipv4("10.1.0.2", mark), dress()), "{way:x?}");
            assert!(bed.passes_as(|mark| plain("fd00:c::7", "fd00:9::1", mark), dress()));
        }
    }
}

#[test]
fn root_no_sid_is_reached_through_a_vlan_on_a_tenants_port() {
    let mut bed = Bed::new();
    let sid = |mark: &str| to_sid(SOURCE, mark);
    let to_other = |mark: &str| plain("fd00:5::1", "fd00:2::9", mark);
    for dataplane in ["xdp", "kernel"] {
        bed.apply("{ l: {}, r: {} }", &format!("dataplane: {dataplane}\n"));
        if !bed.add_vlan() {
            return;
        }
        assert!(bed.passes_as(sid, with_vlan_5), "{dataplane}: nothing to test");
        assert!(bed.passes_as(to_other, with_vlan_5), "{dataplane}: nothing to test");
        let port = "{ l: { tenant: blue }, r: {} }";
        bed.apply(port, &with_tenant(dataplane, "", ""));
        assert!(!bed.passes_as(sid, with_vlan_5), "{dataplane}");
        bed.apply(port, &with_tenant(dataplane, DOMAIN, ""));
        assert!(!bed.passes_as(|mark| to_sid("fd00:5::1", mark), with_vlan_5), "{dataplane}");
        assert!(!bed.passes_as(to_other, with_vlan_5), "{dataplane}: another node's SID");
        let other = |mark: &str| plain(SOURCE, "fd00:b::2", mark);
        assert!(bed.passes_as(other, with_vlan_5), "{dataplane}: it stays an interface");
        // The same for one that is created later.
        ip(&bed.net.node, &["link del dev l5"]);
        bed.add_vlan();
        let rules = || show(&bed.net.node, "-6 rule");
        testkit::until(Duration::from_secs(10), || rules().contains("iif l5").then_some(()), rules);
        assert!(!bed.passes_as(|mark| to_sid("fd00:5::1", mark), with_vlan_5), "{dataplane}");
        assert!(!bed.passes_as(to_other, with_vlan_5), "{dataplane}");
        ip(&bed.net.node, &["link del dev l5"]);
    }
}

/// A priority tag makes a frame of the port's own tenant, also if other tenants own tags.
#[test]
fn root_no_sid_is_reached_with_a_priority_tag_from_a_port_of_whole_frames() {
    let mut bed = Bed::new();
    let tenants = "source: fd00:a::1\ntenants:\n  blue: { frames: [\"fd00:2::9\"] }\n  red:\n    \
                   attachments: [{ port: l, vlan: 7 }]\n    routes: { 10.9.0.0/16: [\"fd00:2::9\"] }\n";
    bed.apply("{ l: { tenant: blue }, r: {} }", tenants);
    for tag in [0x8100_2000, 0x88a8_2000] {
        let mark = format!("whole-{tag:x}");
        let mut frame = bed.frame(&to_sid(SOURCE, &mark));
        tagged(&[tag])(&mut frame);
        bed.tap.send(&frame);
        // The node sends neighbor solicitations too.
        let left =
            std::iter::from_fn(|| bed.out.next()).find(|left| left.ends_with(mark.as_bytes()));
        let left = left.expect("the frame in its policy");
        assert!(left.ends_with(&frame), "{tag:x}: not the whole frame: {left:x?}");
        assert_eq!(left[20], ETHERNET, "{tag:x}");
    }
    for stack in [&[0x8100_0000, 0x8100_0000][..], &[0x8100_0000, 0x88a8_0000]] {
        assert!(!bed.passes_as(|mark| to_sid(SOURCE, mark), tagged(stack)), "{stack:x?}");
    }
}
