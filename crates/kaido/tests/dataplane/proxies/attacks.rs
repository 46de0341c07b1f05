//! Packets that do not belong to the SID, or do not return as its packets, are dropped.

use bpf::srv6::types::limit;
use testkit::{Random, Tap};

use super::bump::BUMP;
use super::routed::ROUTED;
use super::*;
use crate::functions::expect;
use crate::numbered::{Numbered, datagram, receive};

/// Longer than the lifetime of a slot.
const LATE: Duration = Duration::from_secs(5);

#[test]
fn root_a_packet_that_is_foreign_to_the_sid_is_dropped_and_counted() {
    let mut bed = Bed::bridged();
    bed.start(BUMP);
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let tap = bed.net.left.run(|| Tap::open("port")).unwrap();
    let path = [THERE, "fd00:2::d4"].map(|sid| sid.parse().unwrap());
    let source = "fd00:a::2".parse().unwrap();
    let inner = datagram(1, 1);
    let send = |protocol, payload: &[u8]| {
        let packet = Ipv6::new(source, path[0], protocol).around(payload).unwrap();
        tap.send(&frame(&bed.net, &packet));
    };
    let srh = |next| Srh::of_path(next, &path);
    send(protocol::IPV4, &inner);
    send(protocol::UDP, &Udp::new(1, 1).around(b"x").unwrap());
    bed.expect_dropped("no-srh", 2);
    send(
        protocol::ROUTING,
        &Srh { segments_left: 0, ..srh(protocol::IPV4) }.around(&inner).unwrap(),
    );
    bed.expect_dropped("last-segment", 1);
    let mut tlv = srh(protocol::IPV4).around(&inner).unwrap();
    // A padding TLV after the list.
    tlv[1] += 1;
    tlv.splice(8 + 2 * 16..8 + 2 * 16, [4, 6, 0, 0, 0, 0, 0, 0]);
    send(protocol::ROUTING, &tlv);
    bed.expect_dropped("tlv", 1);
    let mut wrong = srh(protocol::IPV4).around(&inner).unwrap();
    wrong[3] = 9;
    send(protocol::ROUTING, &wrong);
    bed.expect_dropped("malformed", 1);
    let udp = Udp::new(1, 1).around(b"x").unwrap();
    send(protocol::ROUTING, &srh(protocol::UDP).around(&udp).unwrap());
    bed.expect_dropped("wrong-payload", 1);
    let packet = |outer: Ipv6, srh: Srh, inner: &[u8]| {
        let packet = outer.around(&srh.around(inner).unwrap()).unwrap();
        tap.send(&frame(&bed.net, &packet));
    };
    let outer = Ipv6::new(source, path[0], protocol::ROUTING);
    packet(Ipv6 { hop_limit: 1, ..outer }, srh(protocol::IPV4), &inner);
    bed.expect_dropped("hop-limit", 1);
    // To a multicast group, and with a length that differs from the header's.
    let ends = ["10.1.0.2", "224.0.0.5"].map(|address| address.parse().unwrap());
    let group = Ipv4::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap();
    packet(outer, srh(protocol::IPV4), &group);
    packet(outer, srh(protocol::IPV4), &inner[..inner.len() - 1]);
    bed.expect_dropped("irregular", 2);
    // Eleven segments are one more than there is room for.
    let long: Vec<_> = path.iter().copied().cycle().take(11).collect();
    packet(outer, Srh::of_path(protocol::IPV4, &long), &inner);
    bed.expect_dropped("no-headroom", 1);
    assert_eq!(bed.counts(THERE), [0, 0]);
    // One byte more than the MTU of the function's interface; then exactly the MTU.
    ip(&bed.net.node, &["link set dev f0 mtu 1400"]);
    let sized = |length: usize| {
        let ends = ["10.1.0.2", "10.9.0.1"].map(|address| address.parse().unwrap());
        let udp = Udp::new(1, 1).around(&vec![0; length - 20 - 8]).unwrap();
        Ipv4::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap()
    };
    packet(outer, srh(protocol::IPV4), &sized(1401));
    bed.expect_dropped("too-big", 1);
    assert!(bed.is_quiet(&received));
    packet(outer, srh(protocol::IPV4), &sized(1400));
    bed.expect_counts(THERE, [2, 1]);
    assert_eq!(bed.dropped("too-big"), 1);
}

/// A slot is valid until the ring reuses it.
#[test]
fn root_a_tag_is_lost_where_a_ring_of_later_ones_has_come() {
    const RING: u32 = limit::LIMIT_PROXIED.0;
    let mut bed = Bed::new();
    bed.start("  fd00:1::f:0:1111: { behavior: End.AD, to: f0, back: f1 }\n");
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let [a, b] = ["a", "b"].map(|name| bed.function.run(|| Tap::open(name)).unwrap());
    let numbered = Numbered::new(&bed.net);
    numbered.send(0..RING);
    let is_inner = |frame: &Vec<u8>| frame[12..14] == [8, 0];
    let sent: Vec<_> = std::iter::from_fn(|| a.next()).filter(is_inner).take(2).collect();
    assert_eq!(sent[0][14..], datagram(0, 1111));
    bed.expect_counts(THERE, [RING.into(), 0]);
    b.send(&sent[0]);
    bed.expect_counts(THERE, [RING.into(), 1]);
    numbered.send(RING..RING + 1);
    bed.expect_counts(THERE, [(RING + 1).into(), 1]);
    b.send(&sent[0]);
    bed.expect_dropped("state-lost", 1);
    // Age is not the reason: the tag of the next packet is valid.
    b.send(&sent[1]);
    receive(&received, 2);
    assert!(bed.is_quiet(&received));
}

/// The test acts as the function: it has the packets that the node sent, and sends any packet.
#[test]
fn root_only_a_tag_of_its_own_gets_out_and_only_by_the_way_back() {
    let mut bed = Bed::new();
    bed.start("  fd00:1::f:0:1111: { behavior: End.AD, to: f0, back: f1 }\n");
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let [a, b] = ["a", "b"].map(|name| bed.function.run(|| Tap::open(name)).unwrap());
    let numbered = Numbered::new(&bed.net);
    numbered.send(0..1);
    let is_inner = |frame: &Vec<u8>| frame[12..14] == [8, 0];
    let sent = std::iter::from_fn(|| a.next()).find(is_inner).unwrap();
    assert_eq!(sent[14..], datagram(0, 1111));
    // In the wrong direction.
    a.send(&sent);
    bed.expect_dropped("state-lost", 1);
    // Forged tags: one bit flipped in each byte, and random ones.
    let mut random = Random::seeded();
    let mut lost = 1;
    for byte in 0..6 {
        let mut forged = sent.clone();
        forged[byte] ^= 1 << (random.bits() % 8);
        b.send(&forged);
        lost += 1;
    }
    for _ in 0..500 {
        let mut forged = sent.clone();
        forged[..6].copy_from_slice(&random.bits().to_ne_bytes()[..6]);
        forged[0] = 0x46;
        b.send(&forged);
        lost += 1;
    }
    // Another family than that of the packet; and a frame without a tag.
    let ends = ["fd00:a::2", "fd00:9::1"].map(|address| address.parse().unwrap());
    let udp = Udp::new(1, 1).around(&[]).unwrap();
    let mut other = sent[..12].to_vec();
    other.extend([0x86, 0xdd]);
    other.extend(Ipv6::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap());
    b.send(&other);
    bed.expect_dropped("state-lost", lost + 1);
    // A priority tag (VLAN 0) does not make it another interface's frame.
    let mut tagged = other.clone();
    tagged.splice(12..12, [0x81, 0, 0xa0, 0]);
    b.send(&tagged);
    bed.expect_dropped("state-lost", lost + 2);
    // Its length differs from that in its header.
    let mut short = sent.clone();
    short.truncate(sent.len() - 1);
    b.send(&short);
    bed.expect_dropped("truncated", 1);
    // A tag that arrives from outside is not valid on any port.
    let outside = bed.net.left.run(|| Tap::open("port")).unwrap();
    let from_right = bed.net.right.run(|| Tap::open("port")).unwrap();
    let before = bed.passed("other-station");
    outside.send(&sent);
    from_right.send(&sent);
    until(
        Duration::from_secs(5),
        || (bed.passed("other-station") >= before + 2).then_some(()),
        || format!("{:#}", bed.reasons()),
    );
    assert!(bed.is_quiet(&received));
    // Meanwhile the tag is still valid; the padding of Ethernet is not part of the packet.
    b.send(&[&sent[..], &[0; 9]].concat());
    receive(&received, 1);
    assert_eq!(bed.counts(THERE), [1, 1]);
    // But not forever.
    pause(LATE);
    b.send(&sent);
    bed.expect_dropped("state-lost", lost + 3);
    assert!(bed.is_quiet(&received));
}

#[test]
fn root_packets_made_by_a_routing_function_do_not_leave() {
    let mut bed = Bed::routed();
    bed.start(ROUTED);
    expect(&bed.net, "10.9.0.1", true);
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let udp = || {
        for to in ["10.9.0.1:7", "[fd00:9::1]:7", "10.6.0.1:7"] {
            let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = std::net::UdpSocket::bind(any).unwrap();
            for _ in 0..100 {
                socket.send_to(b"own", to).unwrap();
            }
        }
    };
    bed.function.run(udp).unwrap();
    bed.expect_dropped("state-lost", 300);
    assert!(bed.is_quiet(&received));
    // They do not reach the node itself either; neighbor discovery still works.
    assert!(!bed.reaches_node());
    expect(&bed.net, "10.9.0.1", true);
}
