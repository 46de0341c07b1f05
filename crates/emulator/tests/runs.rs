//! Batched datagrams are treated as if each had been received separately.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::router::{Interface, Route, Router};
use emulator::{
    Chance, Filter, Impairments, LinkId, Loss, Network, NodeId, Packet, PortId, Run, Settings,
    Switch, Unfinished,
};
use proptest::prelude::*;
use wire::{Checksum, Ipv4, Ipv6, Mac, Udp, protocol};

const PAYLOAD: usize = 700;

/// A datagram as a host's stack passes it to the network card.
#[derive(Debug, Clone, Copy)]
struct Datagram {
    ipv6: bool,
    number: u16,
    payload: usize,
    hops: u8,
    to: u8,
    port: u16,
    is_whole: bool,
}

const PLAIN: Datagram = Datagram {
    ipv6: false,
    number: 0,
    payload: PAYLOAD,
    hops: 64,
    to: 2,
    port: 7000,
    is_whole: true,
};

fn packet(of: Datagram) -> Packet {
    let Datagram { ipv6, number, payload, hops, to, port, is_whole } = of;
    let mut udp = Vec::new();
    let length = payload as u16;
    Udp { src_port: 1000, dst_port: port, payload_len: length, checksum: 0 }
        .emit(&mut udp)
        .unwrap();
    udp.extend((0..payload).map(|at| (at as u16 ^ number) as u8));
    let (ip, header) = if ipv6 {
        let (src, dst) = ("fd00::1".parse().unwrap(), format!("fd00:{to}::2").parse().unwrap());
        let ip = Ipv6 { hop_limit: hops, ..Ipv6::new(src, dst, protocol::UDP) };
        (ip.around(&udp).unwrap(), 40)
    } else {
        let ip = Ipv4::new([10, 0, 1, 2].into(), [10, 0, to, 2].into(), protocol::UDP);
        (
            Ipv4 { identification: number, ttl: hops, dont_fragment: is_whole, ..ip }
                .around(&udp)
                .unwrap(),
            20,
        )
    };
    let mut frame = vec![2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 9, 9];
    frame.extend(if ipv6 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend(ip);
    let start = 14 + header;
    let addresses = if ipv6 { 22..54 } else { 26..34 };
    let sum = Checksum::default().with(&frame[addresses]).with(&[0, protocol::UDP]);
    let sum = !sum.with(&(udp.len() as u16).to_be_bytes()).finish();
    frame[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    let unfinished = Unfinished { start: start as u16, offset: 6 };
    Packet::offloaded(&frame, Some(unfinished), None).unwrap()
}

/// Returns consecutive packets after batching.
fn joined(packets: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
    let (mut run, mut all) = (Run::default(), Vec::new());
    for packet in packets {
        if run.goes_on_with(&packet) {
            run.add(packet);
        } else {
            all.extend(run.end());
            run.begin(packet);
        }
    }
    all.extend(run.end());
    all
}

fn cut(packets: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
    let mut pieces = Vec::new();
    packets.into_iter().for_each(|packet| packet.split(|piece| pieces.push(piece)));
    pieces
}

fn series(of: Datagram, count: u16) -> Vec<Packet> {
    let number = |n: u16| of.number.wrapping_add(n);
    (0..count).map(|n| packet(Datagram { number: number(n), ..of })).collect()
}

proptest! {
    #[test]
    fn a_joined_run_is_split_into_the_same_packets(
        ipv6: bool, number: u16, payload in 1_usize..1473, count in 1_u16..150, made: bool,
    ) {
        let mut each = series(Datagram { ipv6, number, payload, ..PLAIN }, count);
        if made {
            each.iter_mut().for_each(Packet::finish);
        }
        let joined = joined(each.clone());
        prop_assert_eq!(joined.iter().map(Packet::count).sum::<u32>(), u32::from(count));
        prop_assert!(joined.iter().all(|one| one.bytes().len() <= 14 + 65_575));
        // 64 KiB hold 43 times 1473 bytes of payload and headers.
        prop_assert!(joined.len() <= usize::from(count).div_ceil(43));
        let mut pieces = cut(joined);
        if made {
            pieces.iter_mut().for_each(Packet::finish);
        }
        prop_assert_eq!(pieces, each);
    }
}

#[test]
fn packets_that_differ_are_not_joined() {
    let one = packet(PLAIN);
    let next = Datagram { number: 1, ..PLAIN };
    assert_eq!(joined([one.clone(), packet(next)]).len(), 1);
    let others = [
        Datagram { number: 2, ..next },
        Datagram { number: 0, ..next },
        Datagram { payload: PAYLOAD - 1, ..next },
        Datagram { hops: 63, ..next },
        Datagram { to: 3, ..next },
        Datagram { port: 7001, ..next },
        Datagram { ipv6: true, ..next },
    ];
    for other in others {
        assert_eq!(joined([one.clone(), packet(other)]).len(), 2, "{other:?}");
    }
    // With a complete checksum, as received from another machine's network card.
    let mut finished = packet(next);
    finished.finish();
    assert_eq!(joined([one.clone(), finished]).len(), 2);
    let mut finished = one.clone();
    finished.finish();
    assert_eq!(joined([finished, packet(next)]).len(), 2);
    // With an invalid checksum, or without one.
    for sum in [[1, 1], [0, 0]] {
        let made = series(PLAIN, 2).into_iter().map(|mut packet| {
            packet.finish();
            let mut bytes = packet.bytes().to_vec();
            bytes[40..42].copy_from_slice(&sum);
            Packet::new(&bytes).unwrap()
        });
        assert_eq!(joined(made).len(), 2);
    }
    // With an invalid header checksum, which a router would detect.
    let wrong = |packet: Packet| {
        let mut bytes = packet.bytes().to_vec();
        bytes[24] ^= 1;
        Packet::offloaded(&bytes, packet.unfinished(), None).unwrap()
    };
    assert_eq!(joined([one.clone(), wrong(packet(next))]).len(), 2);
    assert_eq!(joined([wrong(one), packet(next)]).len(), 2);
    // A fragment is not a complete datagram.
    let fragments = series(PLAIN, 2).into_iter().map(|packet| {
        let mut bytes = packet.bytes().to_vec();
        bytes[20] |= 0x20;
        bytes[24..26].fill(0);
        let sum = Checksum::default().with(&bytes[14..34]).finish();
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        Packet::offloaded(&bytes, packet.unfinished(), None).unwrap()
    });
    assert_eq!(joined(fragments).len(), 2);
}

/// A host, two routers, a switch and another host.
struct Line {
    network: Network,
    ports: [PortId; 2],
    links: Vec<LinkId>,
    routers: [NodeId; 2],
}

fn line() -> Line {
    let mut network = Network::new(3);
    let ports = [network.port(), network.port()];
    let mac = |router: u8, side: u8| Mac([2, 0, 0, 0, router, side]);
    let net = |text: String| text.parse().unwrap();
    let router = |n: u8| {
        let interface = |side: u8, peer: Mac, mtu: u16| Interface {
            mac: mac(n, side),
            mtu,
            addresses: vec![
                net(format!("10.0.{}.{}/24", 10 * u8::from(n + side == 2) + n + side, n)),
                net(format!("fd00:{}::{n}/64", 10 * u8::from(n + side == 2) + n + side)),
            ],
            only_peer: Some(peer),
        };
        let ends = if n == 1 {
            [interface(0, Mac([2, 0, 0, 0, 9, 9]), 1500), interface(1, mac(2, 0), 1500)]
        } else {
            [interface(0, mac(1, 1), 1500), interface(1, Mac([2, 0, 0, 0, 9, 8]), 1200)]
        };
        // To 10.0.2.0/24 and back; there is no route to 10.0.4.0/24.
        let route = |prefix: &str, interface| Route {
            prefix: prefix.parse().unwrap(),
            interface,
            via: None,
        };
        let routes = vec![
            route("10.0.2.0/24", 1),
            route("fd00:2::/64", 1),
            route("10.0.1.0/24", 0),
            route("fd00::/64", 0),
        ];
        Router::new(ends.into(), routes)
    };
    let routers = [1, 2].map(|n| network.router(router(n)));
    let switch = network.switch(Switch::new(2));
    let (a, b) = (NodeId::from(ports[0]), NodeId::from(ports[1]));
    let pairs = [
        ((a, 0), (routers[0], 0)),
        ((routers[0], 1), (routers[1], 0)),
        ((routers[1], 1), (switch, 0)),
        ((switch, 1), (b, 0)),
    ];
    let mut links = Vec::new();
    for (n, (one, other)) in pairs.into_iter().enumerate() {
        links.push(network.link(&format!("{n}>"), one, other, Settings::default()));
        links.push(network.link(&format!("{n}<"), other, one, Settings::default()));
    }
    Line { network, ports, links, routers }
}

/// Returns the output of the network, with batches split.
fn through(line: &mut Line, packets: Vec<Packet>) -> Vec<(PortId, Packet)> {
    let mut out = Vec::new();
    let mut now = 1;
    for packet in packets {
        line.network.receive(now, line.ports[0], packet);
        line.network.advance(now, &mut |port, _, packet| out.push((port, packet)));
    }
    while let Some(next) = line.network.next() {
        now = next;
        line.network.advance(now, &mut |port, _, packet| out.push((port, packet)));
    }
    let mut each = Vec::new();
    for (port, packet) in out {
        packet.split(|one| each.push((port, one)));
    }
    each
}

#[test]
fn as_one_or_each_for_itself_the_same_leaves_and_is_counted() {
    let lossy = Impairments { loss: Loss::Independent(Chance::new(0.5)), ..Impairments::default() };
    let settings = |impairments| Settings { impairments, ..Settings::default() };
    let delayed = Impairments { delay: 1000, ..Impairments::default() };
    let all: Vec<(Datagram, Option<Impairments>, usize)> = vec![
        (PLAIN, None, 10),
        (Datagram { ipv6: true, ..PLAIN }, None, 10),
        // Ten ICMP errors are returned.
        (Datagram { hops: 1, ..PLAIN }, None, 10),
        (Datagram { hops: 2, ..PLAIN }, None, 10),
        (Datagram { hops: 1, ipv6: true, ..PLAIN }, None, 10),
        (Datagram { to: 4, ..PLAIN }, None, 10),
        (Datagram { payload: 1300, ipv6: true, ..PLAIN }, None, 10),
        // Two fragments of each.
        (Datagram { payload: 1300, is_whole: false, ..PLAIN }, None, 20),
        (Datagram { payload: 1300, ..PLAIN }, None, 10),
        (PLAIN, Some(delayed), 10),
        // The same packets are lost as without batching.
        (PLAIN, Some(lossy), 5),
    ];
    for (datagram, impairments, leave) in all {
        let packets = series(datagram, 10);
        let as_one = joined(packets.clone());
        assert_eq!(as_one.len(), 1);
        let [mut one, mut each] = [line(), line()];
        if let Some(impairments) = impairments {
            for line in [&mut one, &mut each] {
                line.network.change(0, line.links[2], settings(impairments.clone()));
            }
        }
        let left = through(&mut one, as_one);
        assert_eq!(left.len(), leave, "{datagram:?}");
        assert_eq!(left, through(&mut each, packets), "{datagram:?}");
        for id in one.links.iter().copied() {
            assert_eq!(one.network.get(id).counts(), each.network.get(id).counts());
        }
        for id in one.routers {
            let counts = |line: &Line| *line.network.router_at(id).unwrap().counts();
            assert_eq!(counts(&one), counts(&each));
        }
        // The next packet has the same sequence number.
        let lossy = settings(Impairments {
            loss: Loss::Independent(Chance::new(0.5)),
            ..Impairments::default()
        });
        let after = |line: &mut Line| {
            line.network.change(0, line.links[0], lossy.clone());
            through(line, series(PLAIN, 40)).len()
        };
        assert_eq!(after(&mut one), after(&mut each));
    }
}

#[test]
fn a_path_is_clear_without_impairments_and_captures() {
    let Line { mut network, ports: [a, b], links, .. } = line();
    assert!(network.is_clear(a) && network.is_clear(b));
    let delayed = Impairments { delay: 1000, ..Impairments::default() };
    network.change(0, links[4], Settings { impairments: delayed, ..Settings::default() });
    assert!(!network.is_clear(a) && !network.is_clear(b));
    network.change(0, links[4], Settings::default());
    assert!(network.is_clear(a));
    let filter = Filter { from: None, to: None, protocol: Some(17), ports: None };
    network.set_filters(links[0], vec![filter]);
    assert!(!network.is_clear(a));
    network.set_filters(links[0], Vec::new());
    assert!(network.is_clear(a));
    network.get_mut(links[6]).watch(1 << 20);
    assert!(!network.is_clear(a));
    network.get_mut(links[6]).unwatch();
    assert!(network.is_clear(a));
    network.change(0, links[6], Settings { is_down: true, ..Settings::default() });
    assert!(!network.is_clear(a));
}
