//! Behaviors that look up in a VRF, compared with those of the kernel (`vrftable`). The VRF's
//! routes are those of the main table with left and right swapped.

use bpf::srv6::types::{self, behavior};
use testkit::Random;
use testkit::feature::VRF;
use wire::protocol::{IPV4, IPV6};

use super::compare::hex;
use super::differential::packets;
use super::node::{Node, with_node};
use super::packets::*;
use super::random::Dice;
use crate::bed::{NODE_LEFT, index, ip, try_ip};

const RED: &str = "red";
const TABLE: u32 = 300;

/// SIDs that look up in the VRF, and their counterparts without VRF for random packets.
const SIDS: [(&str, &str, behavior, &str); 3] = [
    ("fd00:1::4d", "End.DT4", behavior::BEHAVIOR_END_DT4, "fd00:1::d4"),
    ("fd00:1::4e", "End.DT46", behavior::BEHAVIOR_END_DT46, "fd00:1::da"),
    ("fd00:1::4f", "End.DT6", behavior::BEHAVIOR_END_DT6, "fd00:1::d6"),
];

/// Runs `test` in a node with the VRF, if the kernel supports VRFs.
fn with_vrf(test: impl FnOnce(&mut Node) + Send + 'static) {
    with_node(|node| {
        if let Err(why) = try_ip(&format!("link add {RED} type vrf table {TABLE}")) {
            return VRF.is_missing(why);
        }
        // A table has a single VRF, as `vrftable` requires.
        std::fs::write("/proc/sys/net/vrf/strict_mode", "1").unwrap();
        for line in [
            "link set red up",
            "route add default via 10.0.1.2 dev l onlink table 300",
            "route add 10.1.0.0/16 via 10.0.2.2 dev r onlink table 300",
            "-6 route add default via fd00:a::2 dev l table 300",
            "-6 route add fd00:9::/32 via fd00:b::2 dev r table 300",
        ] {
            ip(line);
        }
        for family in ["-4", "-6"] {
            // As recommended in the kernel's documentation of VRFs: otherwise packets in a VRF
            // match the addresses of the main table.
            ip(&format!("{family} rule add pref 32765 table local"));
            ip(&format!("{family} rule del pref 0"));
        }
        for (sid, name, what, _) in SIDS {
            let action = format!("{name} vrftable {TABLE}");
            node.sid(&format!("{sid}/128"), &action, true, |sid| {
                sid.behavior = what.0 as u8;
                sid.params.table = types::sid_table { number: 0, vrf: index(RED) };
            });
        }
        test(node);
    });
}

#[test]
fn root_oracle_vrf_decapsulation() {
    with_vrf(|node| {
        let v4 = |dst: &str| V4::new("10.3.0.1", dst).with(&udp(22));
        let v6 = |dst: &str| V6::new("fd00:7::9", dst, 17).with(&udp(500));
        for (sid, _, what, _) in SIDS {
            for (next_header, inner, to_left) in [
                (IPV4, v4("10.2.0.1"), true),
                (IPV4, v4("10.1.0.1"), false),
                (IPV6, v6("fd00:8::9"), true),
                (IPV6, v6("fd00:9::9"), false),
            ] {
                let takes = match what {
                    behavior::BEHAVIOR_END_DT4 => next_header == IPV4,
                    behavior::BEHAVIOR_END_DT6 => next_header == IPV6,
                    _ => true,
                };
                let bare = frame6(&V6::new("fd00:9::1", sid, next_header).with(&inner));
                let last = on_path(&["fd00:2::1", sid], 0, next_header, &inner);
                for frame in [bare, last] {
                    if takes {
                        assert_eq!(node.forwards(&frame)[6..12] == NODE_LEFT, to_left);
                    } else {
                        node.declines(&frame);
                    }
                }
            }
        }
    });
}

/// If the VRF's table has no route, no other table is used.
#[test]
fn root_oracle_vrf_without_a_route() {
    with_vrf(|node| {
        ip("route replace unreachable default table 300");
        ip("-6 route del default table 300");
        ip("-6 route add unreachable default table 300");
        for (sid, _, _, _) in SIDS {
            let v4 = V4::new("10.3.0.1", "10.2.0.1").with(&udp(22));
            node.declines(&on_path(&[sid], 0, IPV4, &v4));
            let v6 = V6::new("fd00:7::9", "fd00:8::9", 17).with(&udp(22));
            node.declines(&on_path(&[sid], 0, IPV6, &v6));
        }
    });
}

fn bytes(sid: &str) -> [u8; 16] {
    sid.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

/// Returns the frame with a SID of the VRF instead of its counterpart; none if it has neither.
fn moved_to_vrf(mut frame: Vec<u8>) -> Option<Vec<u8>> {
    let (vrf, main) = SIDS.iter().find_map(|(vrf, _, _, main)| {
        let is = frame.get(38..54) == Some(&bytes(main));
        is.then_some((bytes(vrf), bytes(main)))
    })?;
    for at in 38..frame.len() - 15 {
        if frame[at..at + 16] == main {
            frame[at..at + 16].copy_from_slice(&vrf);
        }
    }
    Some(frame)
}

#[test]
fn root_oracle_vrf_random_packets() {
    with_vrf(|node| {
        let mut dice = Dice(Random::seeded());
        let mut forwarded = 0;
        let count = packets() / 4;
        let frames = std::iter::repeat_with(|| dice.frame()).filter_map(moved_to_vrf);
        for frame in frames.take(count as usize) {
            let same = node.both(&frame).unwrap_or_else(|what| panic!("{what}"));
            forwarded += u64::from(matches!(same, super::compare::Same::Forwarded(_)));
        }
        assert!(forwarded > count / 10, "{forwarded} of {count}");
    });
}

/// A packet that one VRF sends to the SID of the other belongs to the other one, whatever its inner
/// destination is.
#[test]
fn root_oracle_vrf_two_with_the_same_addresses() {
    with_vrf(|node| {
        for line in [
            "link add blue type vrf table 301",
            "link set blue up",
            "route add default via 10.0.2.2 dev r onlink table 301",
        ] {
            ip(line);
        }
        node.sid("fd00:1::5d/128", "End.DT4 vrftable 301", true, |sid| {
            sid.behavior = behavior::BEHAVIOR_END_DT4.0 as u8;
            sid.params.table = types::sid_table { number: 0, vrf: index("blue") };
        });
        for dst in ["10.2.0.1", "10.9.9.9", "192.0.2.1"] {
            let inner = V4::new("10.3.0.1", dst).with(&udp(22));
            for (sid, to_left) in [("fd00:1::4d", true), ("fd00:1::5d", false)] {
                let out = node.forwards(&on_path(&[sid], 0, IPV4, &inner));
                assert_eq!(out[6..12] == NODE_LEFT, to_left, "{}", hex(&out));
            }
        }
    });
}
