//! The emulator's routers behave like real ones to other nodes.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

mod chain;

use std::net::IpAddr;

use emulator::router::{Interface, Route, Router, Stop};
use emulator::{
    Cause, Filter, Impairments, LinkId, Nanos, Network, NodeId, Packet, PortId, Settings,
};
use ipnet::IpNet;
use proptest::prelude::*;
use wire::{
    EthernetPacket, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, Mac, Udp, ethertype, protocol,
    transport_checksum,
};

use chain::*;

#[test]
fn packets_go_through_sixty_routers_in_time() {
    for ipv6 in [false, true] {
        let mut chain = Chain::new(60, MTU);
        // The first packet resolves the neighbors.
        chain.send(0, &datagram(ipv6, 64, 100, true));
        assert_eq!(chain.got(1).len(), 1, "IPv6: {ipv6}");
        let (sent, packet) = (chain.now, datagram(ipv6, 64, 100, true));
        chain.send(0, &packet);
        chain.settle(SECOND);
        let (at, got) = chain.arrived[1].remove(0);
        assert_eq!(at - sent, 61 * MILLISECOND);
        if ipv6 {
            assert_eq!(got, datagram(true, 4, 100, true));
        } else {
            assert_eq!(got, datagram(false, 4, 100, true), "with the right checksum");
        }
    }
}

#[test]
fn traceroute_finds_every_router() {
    for ipv6 in [false, true] {
        let mut chain = Chain::new(60, MTU);
        for hops in 1..=60 {
            let probe = datagram(ipv6, hops, 20, true);
            chain.send(0, &probe);
            let got = chain.got(0);
            assert_eq!(got.len(), 1, "hop {hops}");
            let (from, kind, body) = icmp(&got[0]);
            let link = hops - 1;
            let wanted = if ipv6 { format!("fd00:{link}::1") } else { format!("10.{link}.0.1") };
            assert_eq!(from, address(&wanted));
            assert_eq!(kind, if ipv6 { [3, 0] } else { [11, 0] });
            // The error quotes the packet as the router received it.
            let quoted = datagram(ipv6, 1, 20, true);
            assert_eq!(body[4..], quoted[..]);
        }
        // To a closed port of the last router itself.
        let mut probe = datagram(ipv6, 64, 20, true);
        if ipv6 {
            probe[24..40]
                .copy_from_slice(&"fd00:200::1".parse::<std::net::Ipv6Addr>().unwrap().octets());
        } else {
            let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "10.200.0.1".parse().unwrap(), 17);
            probe = ip.around(&probe[20..]).unwrap();
        }
        chain.send(0, &probe);
        let got = chain.got(0);
        assert_eq!(icmp(&got[0]).1, if ipv6 { [1, 4] } else { [3, 3] });
    }
}

#[test]
fn routers_answer_echo() {
    let mut chain = Chain::new(3, MTU);
    let body = [0, 7, 0, 1, 1, 2, 3];
    let mut ping = vec![8, 0, 0, 0];
    ping.extend(body);
    let sum = wire::Checksum::default().with(&ping).finish();
    ping[2..4].copy_from_slice(&sum.to_be_bytes());
    let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "10.200.0.1".parse().unwrap(), 1);
    chain.send(0, &ip.around(&ping).unwrap());
    let got = chain.got(0);
    assert_eq!(icmp(&got[0]), (address("10.200.0.1"), [0, 0], body.to_vec()));
    ping[..4].copy_from_slice(&[128, 0, 0, 0]);
    let (from, to) = ("fd00:0::2".parse().unwrap(), "fd00:200::1".parse().unwrap());
    let sum = transport_checksum(IpAddr::V6(from), IpAddr::V6(to), 58, &ping).unwrap();
    ping[2..4].copy_from_slice(&sum.to_be_bytes());
    chain.send(0, &Ipv6::new(from, to, 58).around(&ping).unwrap());
    let got = chain.got(0);
    assert_eq!(icmp(&got[0]), (to.into(), [129, 0], body.to_vec()));
}

#[test]
fn a_too_big_packet_is_reported_or_fragmented() {
    let mut chain = Chain::new(2, 1280);
    for (ipv6, kind) in [(false, [3, 4]), (true, [2, 0])] {
        chain.send(0, &datagram(ipv6, 64, 1300, true));
        let got = chain.got(0);
        let (_, found, body) = icmp(&got[0]);
        assert_eq!(found, kind);
        assert_eq!(u32::from_be_bytes(body[..4].try_into().unwrap()), 1280);
        assert_eq!(chain.got(1), [] as [Vec<u8>; 0]);
    }
    let whole = datagram(false, 64, 1400, false);
    chain.send(0, &whole);
    let pieces = chain.got(1);
    assert_eq!(pieces.len(), 2);
    let mut bytes = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        let ip = Ipv4Packet::new_checked(&piece[..]).unwrap();
        assert!(ip.checksum_ok() && piece.len() <= 1280);
        assert_eq!(usize::from(ip.fragment_offset()) * 8, bytes.len());
        assert_eq!(ip.more_fragments(), number == 0);
        bytes.extend_from_slice(ip.payload());
    }
    assert_eq!(bytes, whole[20..]);
    let counts = chain.network.router_at(chain.routers[1]).unwrap().counts();
    assert_eq!(counts.stopped(Stop::TooBig), 2);
}

#[test]
fn an_unreachable_destination_is_reported() {
    let mut chain = Chain::new(2, MTU);
    let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "192.0.2.1".parse().unwrap(), 17);
    let udp = Udp::new(1, 2).around(&[]).unwrap();
    chain.send(0, &ip.around(&udp).unwrap());
    let got = chain.got(0);
    assert_eq!(icmp(&got[0]).1, [3, 0]);
    // To an on-link address without a host: the last router sends three solicitations.
    let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "10.200.0.77".parse().unwrap(), 17);
    chain.send(0, &ip.around(&udp).unwrap());
    let asked_at = chain.now;
    chain.settle(10 * SECOND);
    let (at, answer) = chain.arrived[0].remove(0);
    assert_eq!(icmp(&answer).1, [3, 1]);
    assert!((3 * SECOND..4 * SECOND).contains(&(at - asked_at)), "{}", at - asked_at);
    let questions = chain.arrived[1].len();
    assert_eq!(questions, 3);
    // No error is sent about an ICMP error.
    let error = [3, 0, 0xfc, 0xff, 0, 0, 0, 0];
    let ip = Ipv4::new("10.0.0.2".parse().unwrap(), "192.0.2.1".parse().unwrap(), 1);
    chain.send(0, &ip.around(&error).unwrap());
    assert_eq!(chain.got(0).len(), 0);
}

#[test]
fn neighbors_that_are_asked_again_get_their_packets_meanwhile() {
    for ipv6 in [false, true] {
        let mut chain = Chain::new(2, MTU);
        chain.send(0, &datagram(ipv6, 64, 100, true));
        assert_eq!(chain.got(1).len(), 1);
        // A satellite link to the host, and more packets than the queue of an unresolved neighbor
        // holds.
        for link in [4, 5] {
            chain.network.change(chain.now, chain.links[link], delayed(300 * MILLISECOND));
        }
        let (begun, gap, packet) = (chain.now, 2 * MILLISECOND, datagram(ipv6, 64, 100, true));
        for n in 0..130 * SECOND / gap {
            chain.settle(begun + n * gap - chain.now);
            chain.send(0, &packet);
        }
        chain.settle(2 * SECOND);
        let arrived = std::mem::take(&mut chain.arrived[1]);
        let at = |n: u64| begun + n * gap + 302 * MILLISECOND;
        assert_eq!(arrived.len() as u64, 130 * SECOND / gap);
        for ((found, _), n) in arrived.iter().zip(0..) {
            assert_eq!(*found, at(n), "IPv6: {ipv6}, packet {n}");
        }
    }
}

#[test]
fn a_neighbor_that_has_gone_is_given_up_after_three_questions() {
    let mut chain = Chain::new(1, MTU);
    let packet = datagram(false, 64, 100, true);
    chain.send(0, &packet);
    assert_eq!(chain.got(1).len(), 1);
    chain.settle(60 * SECOND);
    chain.hosts[1].addresses[0] = address("10.200.0.99");
    chain.send(0, &packet);
    // The packet and the solicitations.
    assert_eq!(chain.got(1).len(), 4);
    let begun = chain.now;
    chain.send(0, &packet);
    chain.settle(10 * SECOND);
    assert_eq!(chain.arrived[1].len(), 3, "nothing but questions");
    let (at, answer) = chain.arrived[0].remove(0);
    assert_eq!((icmp(&answer).1, (at - begun) / SECOND), ([3, 1], 3));
}

/// 1,000 a second, for packets that arrive on an interface and for absent neighbors on it.
#[test]
fn errors_have_a_rate_limit() {
    let mut chain = Chain::new(1, MTU);
    // No delays, so that all packets are there at once.
    for link in chain.links.clone() {
        chain.network.change(0, link, delayed(0));
    }
    let expired = datagram(false, 1, 100, true);
    let errors = |chain: &mut Chain| chain.got(0).iter().filter(|ip| icmp(ip).1[0] == 11).count();
    // The first error resolves the neighbor.
    chain.send(0, &expired);
    assert_eq!(errors(&mut chain), 1);
    for _ in 0..2000 {
        chain.send(0, &expired);
    }
    assert_eq!(errors(&mut chain), 1000);
    // Those about absent neighbors have a limit of their own, beside that for packets from there.
    let from = |host: &str, to: [u8; 4], ttl| {
        let ip = Ipv4 { ttl, ..Ipv4::new(host.parse().unwrap(), to.into(), 17) };
        ip.around(&Udp::new(1, 2).around(&[]).unwrap()).unwrap()
    };
    for n in 3..253 {
        let absent = from("10.0.0.2", [10, 200, 0, n], 64);
        (0..5).for_each(|_| chain.send(0, &absent));
    }
    chain.settle(3 * SECOND + MILLISECOND);
    chain.send(1, &from("10.200.0.2", [10, 0, 0, 2], 1));
    chain.settle(MILLISECOND);
    let unreachable = std::mem::take(&mut chain.arrived[0]);
    assert_eq!(unreachable.iter().filter(|(_, ip)| icmp(ip).1 == [3, 1]).count(), 1000);
    let of_host: Vec<[u8; 2]> =
        chain.got(1).iter().filter(|ip| ip[0] == 0x45).map(|ip| icmp(ip).1).collect();
    assert_eq!(of_host, [[11, 0]]);
}

#[test]
fn packets_that_wait_for_neighbors_use_buffer_space() {
    let mut chain = Chain::new(1, MTU);
    chain.network.set_room(50 * 2048);
    for n in 1..200_u8 {
        let ip = Ipv4::new("10.0.0.2".parse().unwrap(), [10, 200, 0, 2 + n % 250].into(), 17);
        chain.send(0, &ip.around(&Udp::new(1, 2).around(&[]).unwrap()).unwrap());
        chain.settle(3 * MILLISECOND);
    }
    let router = chain.network.router_at(chain.routers[0]).unwrap();
    assert!(router.waiting() <= 50 && router.waiting() > 40, "{}", router.waiting());
    assert_eq!(router.memory(), router.waiting() * 2048);
    assert_eq!(chain.network.get(chain.links[0]).counts().dropped(Cause::Backlog), 199 - 50);
    // The memory is free again after resolution has failed.
    chain.settle(10 * SECOND);
    chain.send(0, &datagram(false, 64, 100, true));
    assert_eq!(chain.got(1).iter().filter(|ip| ip[0] == 0x45).count(), 1);
}

#[test]
fn a_filter_drops_matching_packets_only() {
    let mut chain = Chain::new(1, MTU);
    let udp = Filter { protocol: Some(17), ports: Some(2000..=2000), ..Filter::default() };
    let elsewhere = Filter { ports: Some(2001..=65535), ..udp.clone() };
    let there = Filter { to: Some(net("10.200.0.0/24")), ..Filter::default() };
    for (filter, passes) in [(udp, [false; 2]), (elsewhere, [true; 2]), (there, [false, true])] {
        chain.network.set_filters(chain.links[0], vec![filter.clone()]);
        for (ipv6, passes) in [false, true].into_iter().zip(passes) {
            chain.send(0, &datagram(ipv6, 64, 10, true));
            assert_eq!(chain.got(1).len(), usize::from(passes), "{filter:?}");
        }
    }
    assert_eq!(chain.network.filtered(chain.links[0]), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every packet is accounted for, regardless of the input.
    #[test]
    fn any_bytes_are_accounted_for(
        frames in prop::collection::vec(
            (0..2_usize, prop::collection::vec(any::<u8>(), 14..200), 0..6_usize),
            0..40
        ),
    ) {
        let mut chain = Chain::new(3, 1280);
        for (host, mut bytes, shape) in frames {
            let to = if host == 0 { Mac([2, 0, 0, 0, 0, 1]) } else { Mac([2, 0, 0, 0, 2, 0]) };
            bytes[..6].copy_from_slice(&to.0);
            // Mostly an ethertype that the router parses.
            let kinds = [[8, 0], [8, 0], [0x86, 0xdd], [0x86, 0xdd], [8, 6], [0, 0]];
            bytes[12..14].copy_from_slice(&kinds[shape]);
            if shape == 1 && bytes.len() >= 34 {
                let length = bytes.len() as u16 - 14;
                bytes[14] = 0x45;
                bytes[16..18].copy_from_slice(&length.to_be_bytes());
                bytes[30..34].copy_from_slice(&[10, 200, 0, 2]);
                bytes[24..26].fill(0);
                let sum = wire::Checksum::default().with(&bytes[14..34]).finish();
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            if shape == 3 && bytes.len() >= 54 {
                let length = bytes.len() as u16 - 54;
                bytes[14] = 0x60;
                bytes[18..20].copy_from_slice(&length.to_be_bytes());
                bytes[38..42].copy_from_slice(&[0xfd, 0, 2, 0]);
            }
            let port = chain.hosts[host].port;
            chain.network.receive(chain.now, port, Packet::new(&bytes).unwrap());
            chain.settle(MILLISECOND / 2);
        }
        chain.settle(20 * SECOND);
        prop_assert_eq!(chain.network.next(), None);
        for router in &chain.routers {
            let router = chain.network.router_at(*router).unwrap();
            let account = router.account();
            prop_assert!(account.is_balanced(), "{account:?}");
        }
        for link in &chain.links {
            let link = chain.network.get(*link);
            let counts = link.counts();
            prop_assert_eq!(counts.received, counts.arrived);
        }
    }
}
