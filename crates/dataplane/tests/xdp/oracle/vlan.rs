//! Interfaces stacked on ports: packets that the kernel sends through its VLAN devices have the
//! same tags if the program sends them, and tagged packets are encapsulated as the kernel's VLAN
//! device would.

use bpf::srv6::types;
use testkit::feature::VLAN;
use wire::protocol::{IPV4, IPV6};

use super::differential::random_packets;
use super::node::{Node, with_node};
use super::packets::*;
use crate::bed::{NODE_LEFT, index, ip, try_ip};

/// The device, the command that creates it, and its tags on the wire.
const DEVICES: [(&str, &str, &[u32]); 3] = [
    ("v7", "link add link r name v7 type vlan id 7", &[0x8100_0007]),
    ("s100", "link add link r name s100 type vlan proto 802.1ad id 100", &[]),
    ("q7", "link add link s100 name q7 type vlan id 7", &[0x88a8_0064, 0x8100_0007]),
];

/// Runs `test` in a node with VLAN devices on `r`, each with a separate network.
fn with_vlans(test: impl FnOnce(&mut Node) + Send + 'static) {
    with_node(|node| {
        for (n, (name, make, tags)) in DEVICES.into_iter().enumerate() {
            if let Err(why) = try_ip(make) {
                return VLAN.is_missing(why);
            }
            ip(&format!("link set dev {name} addrgenmode none up"));
            if tags.is_empty() {
                continue;
            }
            for line in [
                format!("addr add fd00:b{n}::1/128 dev {name} nodad noprefixroute"),
                format!("addr add 10.100.{n}.1/32 dev {name}"),
                format!("-6 route add fd00:b{n}::2 dev {name}"),
                format!("route add 10.100.{n}.2 dev {name}"),
                format!("neigh add fd00:b{n}::2 lladdr 02:00:00:00:00:0b dev {name} nud permanent"),
                format!("neigh add 10.100.{n}.2 lladdr 02:00:00:00:00:0b dev {name} nud permanent"),
                format!("-6 route add fd00:7{n}::/32 via fd00:b{n}::2"),
                format!("route add 10.7{n}.0.0/16 via 10.100.{n}.2"),
            ] {
                ip(&line);
            }
            let tag = |at: usize| tags.get(at).map_or(0, |tag| (tag & 0xfff) as u16);
            let upper = types::upper { ifindex: index("r"), outer: tag(0), inner: tag(1) };
            node.plane.stacked_links.set(&index(name), &upper).unwrap();
        }
        test(node);
    });
}

fn with_tags() -> impl Iterator<Item = (usize, Vec<u8>)> {
    let each = DEVICES.into_iter().enumerate().filter(|(_, (_, _, tags))| !tags.is_empty());
    each.map(|(n, (_, _, tags))| (n, tags.iter().flat_map(|tag| tag.to_be_bytes()).collect()))
}

#[test]
fn root_oracle_vlan_tags_are_put_on() {
    with_vlans(|node| {
        node.configure_all(true);
        for (n, tags) in with_tags() {
            let v4 = V4::new("10.1.0.1", &format!("10.7{n}.0.1")).with(&udp(22));
            let v6 = V6::new("fd00:9::9", &format!("fd00:7{n}::9"), 17).with(&udp(500));
            let next = format!("fd00:7{n}::1");
            for frame in [
                on_path(&["fd00:1::e0", &next], 1, IPV4, &v4),
                on_path(&["fd00:1::e1", &next], 1, IPV4, &v4),
                on_path(&["fd00:1::d4"], 0, IPV4, &v4),
                on_path(&["fd00:1::d6"], 0, IPV6, &v6),
                frame6(&V6::new("fd00:9::1", "fd00:1::d4", IPV4).with(&v4)),
            ] {
                let out = node.forwards(&frame);
                assert_eq!(out[12..12 + tags.len()], tags);
            }
        }
    });
}

#[test]
fn root_oracle_vlan_tags_in_front_of_an_outer_header() {
    with_vlans(|node| {
        node.configure_all(true);
        // The segments of every policy are now reached through a VLAN.
        for (n, tags) in with_tags() {
            ip(&format!("-6 route replace fd00:2::/32 via fd00:b{n}::2"));
            let mut control = node.plane.control.read(0);
            control.generation += 1;
            node.plane.control.write(0, control);
            // The longest lists use all headroom without a tag.
            for policy in [0, 1, 2, 4, 5, 6] {
                let v4 = V4::new("10.1.0.1", &format!("10.10.{policy}.9")).with(&udp(22));
                let out = node.forwards(&frame4(&v4));
                assert_eq!(out[12..12 + tags.len()], tags);
                let v6 = V6::new("fd00:9::1", &format!("fd00:3:{policy:x}::9"), 17).with(&udp(22));
                node.forwards(&frame6(&v6));
            }
            let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
            node.forwards(&on_path(&["fd00:1::b6", "fd00:2::8"], 1, IPV4, &inner));
        }
    });
}

/// Creates VLAN devices on `l`.
fn with_vlans_on_the_left(node: &Node) {
    for line in [
        "link add link l name w7 type vlan id 7",
        "link add link l name ws100 type vlan proto 802.1ad id 100",
        "link add link ws100 name wq7 type vlan id 7",
    ] {
        ip(line);
    }
    for name in ["w7", "ws100", "wq7"] {
        ip(&format!("link set dev {name} addrgenmode none up"));
    }
    let mut port = node.plane.ports.get(&(index("l") % 16384)).unwrap().unwrap();
    port.tagged = 1;
    port.flags = types::port_flag::PORT_VLANS.0 as u16;
    node.plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
}

/// A tagged frame to the node, sent through the kernel's VLAN device and through an attachment.
#[test]
fn root_oracle_vlan_tags_are_taken_off() {
    with_vlans(|node| {
        node.configure_all(true);
        with_vlans_on_the_left(node);
        for (outer, inner) in [(7, 0), (100, 7)] {
            let key = types::attachment_key { ifindex: index("l"), outer, inner };
            let value = types::attachment { tenant: 1, ..Default::default() };
            node.plane.attachments.set(&key, &value).unwrap();
        }
        for (_, tags) in with_tags() {
            for policy in [0, 2, 5, 6] {
                let v4 = V4::new("10.1.0.1", &format!("10.10.{policy}.9")).with(&udp(22));
                let v6 = V6::new("fd00:9::1", &format!("fd00:3:{policy:x}::9"), 17).with(&udp(22));
                for mut frame in [frame4(&v4), frame6(&v6)] {
                    frame.splice(12..12, tags.iter().copied());
                    node.forwards(&frame);
                }
            }
        }
        // An unknown tag.
        let mut frame = frame4(&V4::new("10.1.0.1", "10.10.5.9").with(&udp(22)));
        frame.splice(12..12, 0x8100_0009u32.to_be_bytes());
        node.declines(&frame);
    });
}

/// Least share of packets that are forwarded, in percent: those of tenants are not.
const LEAST: u64 = 8;

/// Random packets in VLANs of the SR domain: the kernel receives them on its VLAN devices.
#[test]
fn root_oracle_random_packets_with_tags() {
    with_vlans(|node| {
        node.configure_all(true);
        with_vlans_on_the_left(node);
        for (name, outer, inner) in [("w7", 7, 0), ("wq7", 100, 7)] {
            let (key, vlan) = (index("l"), index(name));
            let port = types::port { ifindex: vlan, mac: NODE_LEFT, ..Default::default() };
            node.plane.ports.set(&(vlan % 16384), &port).unwrap();
            let key = types::attachment_key { ifindex: key, outer, inner };
            let value = types::attachment { vlan, ..Default::default() };
            node.plane.attachments.set(&key, &value).unwrap();
        }
        // The first has its slot, the other one does not.
        let frames = types::attachment_key { ifindex: index("l"), outer: 7, inner: 0 };
        let slot = (index("l") * 61 + 7) % 4096;
        let value = types::vlan_slot { frames, vlan: index("w7") };
        node.plane.vlan_slots.set(&slot, &value).unwrap();
        let tags: Vec<Vec<u8>> = with_tags().map(|(_, tags)| tags).collect();
        random_packets(node, LEAST, |n, frame| {
            frame.splice(12..12, tags[n as usize % tags.len()].iter().copied());
            // The MTU of the peers' links.
            frame.truncate(2014);
        });
    });
}

/// Random packets with a priority tag, which to the kernel are untagged. The left port is not a
/// tenant's here.
#[test]
fn root_oracle_random_packets_with_a_priority_tag() {
    with_node(|node| {
        node.configure_all(true);
        let mut port = node.plane.ports.get(&(index("l") % 16384)).unwrap().unwrap();
        port.tenant = 0;
        node.plane.ports.set(&(port.ifindex % 16384), &port).unwrap();
        random_packets(node, LEAST, |n, frame| {
            frame.splice(12..12, (0x8100_0000 | (n as u32 & 7) << 13).to_be_bytes());
        });
    });
}
