//! Functions that an attacker controls: root in their own namespace.

use testkit::Tap;

use super::*;
use crate::net::redirect_through_ifb;

const STATIC: &str =
    "  fd00:1::f:0:1111: { behavior: End.AS, to: f0, back: f1, policy: [\"fd00:2::d4\"] }\n";
const MASKED: &str = "  fd00:1::f:0:1111: { behavior: End.AM, to: f0, back: f1 }\n";

/// Returns a frame with these VLAN tags and an IPv4 datagram, to any station.
fn tagged(tags: &[u16]) -> Vec<u8> {
    let ends = ["10.1.0.2", "10.9.0.1"].map(|address| address.parse().unwrap());
    let udp = Udp::new(9, 7).around(b"hello!..").unwrap();
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9]);
    tags.iter().for_each(|tag| frame.extend([[0x81, 0], tag.to_be_bytes()].concat()));
    frame.extend([8, 0]);
    frame.extend(Ipv4::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap());
    frame
}

/// The kernel removes the priority tag, and would send the packet with the second one.
#[test]
fn root_a_second_tag_does_not_leave_the_node() {
    let mut bed = Bed::new();
    bed.start(STATIC);
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    for tags in [[0, 100], [0xe000, 0xe064], [0, 0]] {
        own.send(&tagged(&tags));
    }
    bed.expect_dropped("irregular", 3);
    assert!(bed.is_quiet(&received));
    // A priority tag alone is removed.
    own.send(&tagged(&[0xe000]));
    bed.expect_counts(THERE, [0, 1]);
    let frame = std::iter::from_fn(|| received.next()).find(|frame| has_datagram(frame)).unwrap();
    assert_eq!(frame[12..14], [0x86, 0xdd]);
}

/// An offloaded checksum may start at any byte (PACKET_VNET_HDR), also in the outer header, where the next
/// device would write it.
#[test]
fn root_an_offloaded_checksum_does_not_reach_the_outer_header() {
    let mut bed = Bed::new();
    bed.start(STATIC);
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    // 14 bytes, two tags, and the inner packet at 22.
    own.send_with_checksum(&tagged(&[0, 0]), 20, 0);
    bed.expect_dropped("irregular", 1);
    bed.apply(MASKED);
    let masked = returned(&bed, protocol::UDP, &Udp::new(7, 7).around(b"sum").unwrap());
    // Next header and hop limit, and the last bytes of the SRH.
    for (start, dropped) in [(14 + 6, 2), (14 + 40 + 8 + 3 * 16 - 2, 3)] {
        own.send_with_checksum(&masked, start, 0);
        bed.expect_dropped("irregular", dropped);
    }
    assert!(bed.is_quiet(&received));
    own.send_with_checksum(&masked, 14 + 40 + 8 + 3 * 16, 6);
    bed.expect_counts(THERE, [0, 1]);
}

/// Returns a frame to the last segment, as a function returns it to End.AM.
fn returned(bed: &Bed, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let path = [THERE, "fd00:2::5", "fd00:9::1"].map(|sid| sid.parse().unwrap());
    let inside = Srh { segments_left: 1, ..Srh::of_path(protocol, &path) };
    let outer = Ipv6::new("fd00:a::2".parse().unwrap(), path[2], protocol::ROUTING);
    frame(&bed.net, &outer.around(&inside.around(payload).unwrap()).unwrap())
}

/// A packet that a device segments later may have segments of any size. The MTU is 1,700.
#[test]
fn root_no_segment_exceeds_the_mtu() {
    let mut bed = Bed::new();
    bed.start(MASKED);
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    let mut tcp = vec![0, 7, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
    tcp.resize(8000, 7);
    let packet = returned(&bed, protocol::TCP, &tcp);
    let start = 14 + 40 + 8 + 3 * 16;
    own.send_segmented(&packet, start, 3000);
    bed.expect_dropped("too-big", 1);
    own.send_segmented(&packet, start, 1400);
    bed.expect_counts(THERE, [0, 1]);
}

/// Neighbor discovery is valid with the hop limit 255 (RFC 4861 section 7.1). A neighbor that accepts an
/// SRH to itself would take a function's message for one of the node.
#[test]
fn root_a_function_cannot_forge_neighbor_discovery_on_the_next_link() {
    let mut bed = Bed::new();
    bed.start(MASKED);
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    let [source, to] = ["fd00:b::1", "fd00:b::2"].map(|address| address.parse().unwrap());
    let udp = Udp::new(7, 7).around(b"nd").unwrap();
    let inside = Srh { segments_left: 0, ..Srh::of_path(protocol::UDP, &[to]) };
    let inside = inside.around(&udp).unwrap();
    let send = |hop_limit| {
        let outer = Ipv6 { hop_limit, ..Ipv6::new(source, to, protocol::ROUTING) };
        own.send(&frame(&bed.net, &outer.around(&inside).unwrap()));
    };
    send(0);
    send(1);
    bed.expect_dropped("hop-limit", 2);
    assert!(bed.is_quiet(&received));
    send(255);
    let outer = std::iter::from_fn(|| received.next()).find_map(|frame| datagram_of(&frame));
    assert_eq!(outer.unwrap().0.hop_limit, 254);
}

/// A datagram to a group of the link would also reach the node's services, and its tunnels.
#[test]
fn root_no_datagram_to_a_group_reaches_the_node() {
    let mut bed = Bed::new();
    bed.start(STATIC);
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    let [source, group] = ["fe80::9", "ff02::1"].map(|address| address.parse().unwrap());
    let udp = Udp::new(4789, 4789).around(b"group").unwrap();
    let to_group = |destination: [u8; 6], kind: [u8; 2], packet: Vec<u8>| {
        own.send(&[&destination[..], &[2, 0, 0, 0, 0, 9], &kind, &packet].concat());
    };
    let ipv6 = |next, payload: &[u8]| {
        let packet = Ipv6::new(source, group, next).around(payload).unwrap();
        to_group([0x33, 0x33, 0, 0, 0, 1], [0x86, 0xdd], packet);
    };
    ipv6(protocol::UDP, &udp);
    // In a hop-by-hop header, as MLD is, and after another header.
    ipv6(0, &[&[protocol::UDP, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat());
    ipv6(60, &[&[protocol::UDP, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat());
    let ends = ["10.6.0.2", "224.0.0.5"].map(|address| address.parse().unwrap());
    let ipv4 = |protocol, payload: &[u8]| {
        let packet = Ipv4::new(ends[0], ends[1], protocol).around(payload).unwrap();
        to_group([1, 0, 0x5e, 0, 0, 5], [8, 0], packet);
    };
    ipv4(protocol::UDP, &udp);
    // GRE.
    ipv4(47, &[0, 0, 8, 0, 0x45, 0, 0, 20]);
    // Those of the link are the kernel's: ICMP, IGMP, OSPF, PIM and VRRP, and MLD in a hop-by-hop header.
    for protocol in [1, 2, 89, 103, 112] {
        ipv4(protocol, &[0; 32]);
    }
    for next in [protocol::ICMPV6, 89, 103, 112] {
        ipv6(next, &[0; 32]);
    }
    ipv6(0, &[protocol::ICMPV6, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0]);
    bed.expect_dropped("irregular", 5);
}

/// tc passes packets without its programs that an ifb of the sender has redirected.
#[test]
fn root_packets_past_the_program_are_dropped_by_netfilter() {
    const COUNT: u64 = 64;
    let mut bed = Bed::new();
    ip(&bed.net.node, &["addr add 10.5.0.1/24 dev f0", "addr add 10.6.0.1/24 dev f1"]);
    ip(
        &bed.net.node,
        &["neigh add 10.9.0.1 lladdr 02:00:00:00:00:07 dev r", "route add 10.9.0.1/32 dev r"],
    );
    bed.start(STATIC);
    ip(&bed.function, &["link add evade link b type macvlan mode private", "link set evade up"]);
    redirect_through_ifb(&bed.function, "evade");
    let own = bed.function.run(|| Tap::open("evade")).unwrap();
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let mac = || netlink::Handle::new().unwrap().link("f1").unwrap().mac.unwrap();
    let mut forged = tagged(&[]);
    forged[..6].copy_from_slice(&bed.net.node.run(mac).unwrap().0);
    let returned = || bed.counts(THERE)[1];
    (0..COUNT).for_each(|_| own.send(&forged));
    let dropped = || {
        let list =
            || Command::new("nft").args(["-j", "list", "table", "inet", "kaido-guard"]).output();
        let listed: Value =
            serde_json::from_slice(&bed.net.node.run(list).unwrap().unwrap().stdout).unwrap();
        let rules = listed["nftables"].as_array().unwrap().iter();
        let mut terms = rules.flat_map(|one| one["rule"]["expr"].as_array().into_iter().flatten());
        terms.find_map(|term| term["counter"]["packets"].as_u64()).unwrap()
    };
    // Some pass the program, and netfilter drops all others, and what the kernel sends on the macvlan.
    until(
        Duration::from_secs(5),
        || (returned() + dropped() >= COUNT).then_some(()),
        || format!("{} returned, {} dropped", returned(), dropped()),
    );
    assert!(returned() < COUNT, "no packet was past the program");
    // Those of the program have an outer header.
    for _ in 0..returned() {
        let mut frames = std::iter::from_fn(|| received.next());
        let frame = frames.find(|frame| has_datagram(frame)).expect("a packet of the program");
        assert_eq!(frame[12..14], [0x86, 0xdd]);
    }
    assert!(bed.is_quiet(&received));
    // The link's own packets pass both.
    ip(&bed.function, &["link set evade down", "addr add 10.6.0.2/24 dev b"]);
    let arping = || Command::new("ping").args(["-c1", "-W1", "10.6.0.1"]).output();
    let _ = bed.function.run(arping).unwrap();
    let known = || Command::new("ip").args(["neigh", "show", "10.6.0.1"]).output().unwrap();
    let known = bed.function.run(known).unwrap();
    assert!(String::from_utf8_lossy(&known.stdout).contains("lladdr"), "{known:?}");
}
