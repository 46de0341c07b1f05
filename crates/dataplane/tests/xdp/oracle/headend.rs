//! H.Encaps in all its variants.

use bpf::srv6::types;
use srv6::Form;

use super::compare::Same;
use super::network::POLICIES;
use super::node::with_node;
use super::packets::*;
use crate::bed::{index, ip};

#[test]
fn root_oracle_h_encaps() {
    with_node(|node| {
        node.configure_all(true);
        for (n, (form, count)) in POLICIES.into_iter().enumerate() {
            let outer = match (form, count) {
                (Form::Encaps, _) => 40 + 8 + 16 * count,
                (Form::EncapsRed, 1) => 40,
                (Form::EncapsRed, _) => 40 + 8 + 16 * (count - 1),
                // The packet's destination is the last segment.
                (Form::Insert, _) => 8 + 16 * (count + 1),
            };
            for payload in [0, 1, 22, 500, 1400] {
                if form != Form::Insert {
                    let v4 = V4::new("10.1.0.1", &format!("10.10.{n}.9"));
                    let frame = frame4(&v4.with(&udp(payload)));
                    assert_eq!(node.forwards(&frame).len(), frame.len() + outer);
                }
                let v6 = V6::new("fd00:9::1", &format!("fd00:3:{n:x}::9"), 17);
                let frame = frame6(&v6.with(&udp(payload)));
                assert_eq!(node.forwards(&frame).len(), frame.len() + outer);
            }
        }
    });
}

/// Fields that are copied from the inner to the outer header, and fields that are not.
#[test]
fn root_oracle_h_encaps_copies_from_inside() {
    with_node(|node| {
        node.configure_all(true);
        for n in [0, 1, 4, 5] {
            for hop_limit in [0, 1, 2, 3, 64, 255] {
                for tos in [0, 1, 0x2e << 2, 0xff] {
                    let mut v4 = V4::new("10.1.0.1", &format!("10.10.{n}.9"));
                    (v4.ttl, v4.tos) = (hop_limit, tos);
                    let out = node.forwards(&frame4(&v4.with(&udp(22))));
                    assert_eq!((out[14], out[15] & 0xf0, out[21]), (0x60, 0, 63));
                    let mut v6 = V6::new("fd00:9::1", &format!("fd00:3:{n:x}::9"), 17);
                    (v6.hop_limit, v6.flow) = (hop_limit, u32::from(tos) << 20 | 0x12345);
                    let same = node.both(&frame6(&v6.with(&udp(22)))).unwrap();
                    assert_eq!(hop_limit > 1, matches!(same, Same::Forwarded(_)));
                }
            }
        }
    });
}

/// H.Encaps.L2 encapsulates frames with any payload; the kernel's variant only those of routed
/// packets. The kernel treats inner IPv6 as H.Encaps does, so only IPv4 is comparable.
#[test]
fn root_oracle_h_encaps_l2() {
    with_node(|node| {
        for (mode, form, count) in [
            ("l2encap", Form::Encaps, 1),
            ("l2encap", Form::Encaps, 9),
            ("l2encap.red", Form::EncapsRed, 1),
            ("l2encap.red", Form::EncapsRed, 2),
            ("l2encap.red", Form::EncapsRed, 10),
        ] {
            let path = super::network::segments(count);
            let encap = format!("encap seg6 mode {mode} segs {} dev r", path.join(","));
            ip(&format!("route replace 10.20.0.0/16 {encap}"));
            let policy = node.policy(&path, form, true);
            let mut port = node.plane.ports.get(&(index("l") % 16384)).unwrap().unwrap();
            port.policy = policy;
            node.plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
            for payload in [18, 500, 1400] {
                let v4 = V4::new("10.1.0.1", "10.20.0.9").with(&udp(payload));
                node.forwards(&frame4(&v4));
            }
            assert_eq!(node.plane.count(node.counters - 1).packets, 3);
        }
    });
}

/// A tag identifies the tenant and is not encapsulated.
#[test]
fn root_tagged_and_untagged_frames_are_encapsulated_alike() {
    with_node(|node| {
        node.configure_all(true);
        let vlan_mac = [2, 0, 0, 0, 0, 0x55];
        let mut port = node.plane.ports.get(&(index("l") % 16384)).unwrap().unwrap();
        port.tagged = 1;
        node.plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
        for (outer, inner) in [(7, 0), (100, 7)] {
            let key = types::attachment_key { ifindex: index("l"), outer, inner };
            let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3], vlan_mac];
            let value = types::attachment { tenant: 1, policy: 0, vlan: 0, macs };
            node.plane.attachments.set(&key, &value).unwrap();
        }
        let v4 = V4::new("10.1.0.1", "10.10.5.9").with(&udp(22));
        let v6 = V6::new("fd00:9::1", "fd00:3:5::9", 17).with(&udp(22));
        for (ethertype, packet) in [(0x0800u16, v4), (0x86dd, v6)] {
            let plain = node.forwards(&to_node(ethertype, &packet));
            for (tags, theirs) in [
                (&[0x8100_2007u32][..], true),
                (&[0x88a8_0064, 0x8100_2007], true),
                (&[0x8100_0064, 0x8100_2007], true),
                (&[0x8100_2008], false),
                // A priority tag (VLAN 0).
                (&[0x8100_2000], true),
            ] {
                let mut frame = to_node(ethertype, &packet);
                frame.splice(12..12, tags.iter().flat_map(|tag| tag.to_be_bytes()));
                let run = node.program(&frame);
                assert_eq!(run.frame, if theirs { plain.clone() } else { frame.clone() });
                // The MAC address of a VLAN interface is for frames of its VLAN only.
                frame[..6].copy_from_slice(&vlan_mac);
                let run = node.program(&frame);
                let is_of_vlan = theirs && tags != [0x8100_2000];
                assert_eq!(run.frame, if is_of_vlan { plain.clone() } else { frame.clone() });
                frame[5] += 1;
                assert_eq!(node.program(&frame).frame, frame);
            }
        }
    });
}
