//! Service functions that keep state of flows.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use testkit::Tap;
use wire::{EthernetPacket, Ipv4, Ipv4Packet, Ipv6Packet, SrhPacket, Udp, protocol};

use crate::functions::{FILE, expect, function_net, nft};
use crate::numbered::{Numbered, datagram, outer_source, receive};

/// A packet of one tenant is not part of another one's flow, even if all addresses and ports are
/// equal.
#[test]
fn root_tenants_with_the_same_addresses_keep_apart_by_zones() {
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    nft(
        &net,
        "table ip zones { chain pre { type filter hook prerouting priority -450; \
             ct zone set meta mark map { 0x1111 : 1, 0x2222 : 2, 0x3333 : 1 }; }; }
         table ip state { chain f { type filter hook forward priority filter; policy drop; \
             meta mark 0x1111 accept; ct state established accept; }; }",
    );
    let received = net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&net);
    let send = |mark, number, inner: &[u8]| {
        numbered.tap.send(&numbered.frame(mark, number, inner));
    };
    let [left, right] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 9, 0, 1)];
    let answer = Udp::new(2222, 1111).around(&1_u32.to_be_bytes()).unwrap();
    let answer = Ipv4::new(right, left, protocol::UDP).around(&answer).unwrap();
    // The answer establishes the flow, in the first zone.
    send(0x1111, 0, &datagram(0, 1111));
    send(0x1111, 1, &answer);
    // The second zone has no such flow. The number 3 is out of range for `receive`.
    send(0x2222, 3, &datagram(3, 1111));
    send(0x3333, 2, &datagram(2, 1111));
    receive(&received, 3);
}

/// The headers of a received fragment.
struct Fragment {
    outer: Ipv6Addr,
    identification: u16,
    offset: usize,
    bytes: Vec<u8>,
}

fn fragment_of(frame: &[u8]) -> Option<Fragment> {
    let ethernet = EthernetPacket::new_checked(frame).ok()?;
    let outer = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
    let srh = SrhPacket::new_checked(outer.payload()).ok()?;
    let inner = Ipv4Packet::new_checked(srh.payload()).unwrap();
    assert!(inner.checksum_ok());
    Some(Fragment {
        outer: outer.src(),
        identification: inner.identification(),
        offset: usize::from(inner.fragment_offset()) * 8,
        bytes: inner.payload().to_vec(),
    })
}

/// Conntrack reassembles fragments, and they are fragmented again on the way out: no larger than
/// they arrived, and each with the outer header of its own datagram.
#[test]
fn root_fragments_out_of_order_leave_behind_their_own_datagrams_header() {
    const LARGEST: usize = 1000;
    let mut net = function_net();
    net.start(&[]);
    net.apply(FILE);
    expect(&net, "10.9.0.1", true);
    nft(
        &net,
        "table ip state { chain f { type filter hook forward priority filter; policy drop; \
             ct state new udp dport 2222 accept; }; }",
    );
    let received = net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&net);
    let [left, right] = [Ipv4Addr::new(10, 1, 0, 2), Ipv4Addr::new(10, 9, 0, 1)];
    let mut sent = BTreeMap::new();
    let mut frames = Vec::new();
    for identification in 1..=20_u16 {
        let payload: Vec<u8> = (0..3000).map(|at| (at as u16 * identification) as u8).collect();
        let datagram = Udp::new(1111, 2222).around(&payload).unwrap();
        for (at, bytes) in datagram.chunks(LARGEST).enumerate() {
            let offset = at * LARGEST;
            let header = Ipv4 {
                identification,
                dont_fragment: false,
                fragment_offset: (offset / 8) as u16,
                more_fragments: offset + bytes.len() < datagram.len(),
                ..Ipv4::new(left, right, protocol::UDP)
            };
            let number = u32::from(identification) * 10 + at as u32;
            frames.push(numbered.frame(0x1111, number, &header.around(bytes).unwrap()));
        }
        sent.insert(identification, datagram);
    }
    // The last fragment arrives first, and fragments of two other datagrams arrive in between.
    frames.reverse();
    for first in 0..3 {
        frames.iter().skip(first).step_by(3).for_each(|frame| numbered.tap.send(frame));
    }
    let mut got: BTreeMap<u16, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    let whole = |parts: &BTreeMap<usize, Vec<u8>>| parts.values().map(Vec::len).sum::<usize>();
    while got.len() < sent.len() || got.values().any(|parts| whole(parts) < 3008) {
        let Some(fragment) = fragment_of(&received.next().expect("every fragment")) else {
            continue;
        };
        let own = u32::from(fragment.identification) * 10;
        let is_own = (own..own + 4).any(|number| outer_source(number) == fragment.outer);
        assert!(is_own, "{} behind {}", fragment.identification, fragment.outer);
        assert!(fragment.bytes.len() <= LARGEST);
        got.entry(fragment.identification).or_default().insert(fragment.offset, fragment.bytes);
    }
    for (identification, datagram) in sent {
        let parts: Vec<u8> = got[&identification].values().flatten().copied().collect();
        assert!(parts == datagram, "datagram {identification}");
    }
}
