//! Software segmentation yields the same packets as a network card.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use emulator::{BadPacket, Cut, Frame as _, Packet, Segments, Unfinished};
use proptest::prelude::*;
use wire::{
    Checksum, EthernetPacket, Ipv4, Ipv4Packet, Ipv6, Ipv6Packet, TcpPacket, Udp, UdpPacket,
    protocol, transport_checksum,
};

const SEQUENCE: u32 = u32::MAX - 1000;
/// FIN, PSH, ACK and CWR.
const FLAGS: u8 = 0x99;

/// Returns a TCP header with options, followed by `payload`.
fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x30, 0x39, 0x14, 0x51];
    header.extend(SEQUENCE.to_be_bytes());
    header.extend([0, 0, 0, 7, 0x80, FLAGS, 1, 0, 0, 0, 0, 0]);
    header.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    header.extend(payload);
    header
}

/// Returns a frame around a transport packet, and the offset of the latter.
fn frame(ipv6: bool, tags: usize, next: u8, transport: &[u8]) -> (Vec<u8>, usize) {
    let ip = if ipv6 {
        Ipv6::new("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), next).around(transport)
    } else {
        let ip = Ipv4::new("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), next);
        Ipv4 { identification: 0xffff, ..ip }.around(transport)
    };
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    // The service tag precedes the customer tag.
    bytes.extend(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7][4 * (2 - tags)..]);
    bytes.extend(if ipv6 { [0x86, 0xdd] } else { [8, 0] });
    let ip = ip.unwrap();
    let start = bytes.len() + ip.len() - transport.len();
    bytes.extend(ip);
    (bytes, start)
}

fn cut(packet: Packet) -> Vec<Packet> {
    let mut pieces = Vec::new();
    packet.split(|piece| pieces.push(piece));
    pieces
}

/// Returns the transport packet after completing the checksum, and verifies the IP checksum.
fn transport(mut packet: Packet, tags: usize) -> Vec<u8> {
    packet.finish();
    let ethernet = EthernetPacket::new_checked(packet.bytes()).unwrap();
    let ip = &ethernet.payload()[4 * tags..];
    if ip[0] >> 4 == 4 {
        let ip = Ipv4Packet::new_checked(ip).unwrap();
        assert!(ip.checksum_ok());
        let (src, dst) = (ip.src().into(), ip.dst().into());
        assert_eq!(transport_checksum(src, dst, ip.protocol(), ip.payload()), Some(0));
        ip.payload().to_vec()
    } else {
        let ip = Ipv6Packet::new_checked(ip).unwrap();
        let (src, dst) = (ip.src().into(), ip.dst().into());
        assert_eq!(transport_checksum(src, dst, ip.next_header(), ip.payload()), Some(0));
        ip.payload().to_vec()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn tcp_is_cut_into_segments_that_give_the_same_bytes(
        payload in prop::collection::vec(any::<u8>(), 0..9000),
        size in 6..2000_u16,
        ipv6: bool,
        tags in 0..3_usize,
    ) {
        let (bytes, start) = frame(ipv6, tags, protocol::TCP, &tcp(&payload));
        let unfinished = Unfinished { start: start as u16, offset: 16 };
        let kind = if ipv6 { Cut::Tcp6 } else { Cut::Tcp4 };
        let packet =
            Packet::offloaded(&bytes, Some(unfinished), Some(Segments { cut: kind, size })).unwrap();
        let length = packet.length();
        let pieces = cut(packet);
        prop_assert_eq!(pieces.len(), payload.len().div_ceil(size.into()).max(1));
        prop_assert_eq!(pieces.iter().map(|piece| piece.length()).sum::<u32>(), length);
        let (mut got, last) = (Vec::new(), pieces.len() - 1);
        for (number, piece) in pieces.into_iter().enumerate() {
            if !ipv6 {
                let ip = &piece.bytes()[14 + 4 * tags..];
                let identification = Ipv4Packet::new_checked(ip).unwrap().identification();
                prop_assert_eq!(identification, 0xffff_u16.wrapping_add(number as u16));
            }
            let segment = transport(piece, tags);
            let tcp = TcpPacket::new_checked(&segment[..]).unwrap();
            prop_assert_eq!(tcp.sequence(), SEQUENCE.wrapping_add(got.len() as u32));
            let wanted = match (number == 0, number == last) {
                (true, true) => FLAGS,
                (true, false) => FLAGS & !0x09,
                (false, true) => FLAGS & !0x80,
                (false, false) => FLAGS & !0x89,
            };
            prop_assert_eq!(segment[13], wanted);
            prop_assert!(number == last || tcp.payload().len() == usize::from(size));
            got.extend_from_slice(tcp.payload());
        }
        prop_assert_eq!(got, payload);
    }

    #[test]
    fn udp_is_cut_into_datagrams(
        payload in prop::collection::vec(any::<u8>(), 1..9000),
        size in 6..2000_u16,
        ipv6: bool,
    ) {
        let datagram = Udp::new(1, 2).around(&payload).unwrap();
        let (bytes, start) = frame(ipv6, 0, protocol::UDP, &datagram);
        let unfinished = Unfinished { start: start as u16, offset: 6 };
        let segments = Segments { cut: Cut::Udp, size };
        let packet = Packet::offloaded(&bytes, Some(unfinished), Some(segments)).unwrap();
        let mut got = Vec::new();
        for piece in cut(packet) {
            let datagram = transport(piece, 0);
            let udp = UdpPacket::new_checked(&datagram[..]).unwrap();
            prop_assert_eq!(usize::from(udp.length()), datagram.len());
            got.extend_from_slice(udp.payload());
        }
        prop_assert_eq!(got, payload);
    }

    /// Arbitrary bytes with arbitrary offload metadata neither panic nor lose data.
    #[test]
    fn contradictions_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        start in 0..300_u16,
        offset in 0..300_u16,
        size: u16,
        which in 0..3_usize,
        bit: u64,
    ) {
        let unfinished = Some(Unfinished { start, offset });
        let segments = Segments { cut: [Cut::Tcp4, Cut::Tcp6, Cut::Udp][which], size };
        for segments in [None, Some(segments)] {
            if let Ok(mut packet) = Packet::offloaded(&bytes, unfinished, segments) {
                packet.flip(bit);
                prop_assert!(!cut(packet).is_empty());
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_seen_by_the_checksum() {
    let datagram = Udp::new(1, 2).around(b"payload").unwrap();
    let (mut bytes, start) = frame(false, 0, protocol::UDP, &datagram);
    let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    // With checksum offload the sender writes only the sum of the pseudo-header.
    let sum = Checksum::default().with(&bytes[26..34]).with(&[0, 15, 0, 17]).finish();
    bytes[start + 6..start + 8].copy_from_slice(&(!sum).to_be_bytes());
    let unfinished = Some(Unfinished { start: start as u16, offset: 6 });
    let packet = Packet::offloaded(&bytes, unfinished, None).unwrap();
    let sum = |packet: &Packet| transport_checksum(src, dst, 17, &packet.bytes()[start..]);
    let mut whole = packet.clone();
    whole.finish();
    assert_eq!(sum(&whole), Some(0));
    for bit in 0..15 * 8 {
        let mut wrong = packet.clone();
        // After the IPv4 header.
        wrong.flip(20 * 8 + bit);
        assert_ne!(sum(&wrong), Some(0), "bit {bit}");
    }
    let mut other = packet.clone();
    other.flip(u64::MAX);
    assert_ne!(other.bytes(), whole.bytes());
    assert_eq!(other.bytes()[..14], whole.bytes()[..14]);
}

#[test]
fn an_invalid_frame_is_refused() {
    assert_eq!(Packet::new(&[0; 13]), Err(BadPacket::Short));
    assert_eq!(Packet::new(&[0; 14]).unwrap().length(), 14);
    let (bytes, start) = frame(false, 0, protocol::TCP, &tcp(b"abc"));
    let segments = Some(Segments { cut: Cut::Tcp4, size: 1 });
    let unfinished = |start: usize| Some(Unfinished { start: start as u16, offset: 16 });
    let offloaded = |unfinished, segments| Packet::offloaded(&bytes, unfinished, segments).err();
    assert_eq!(offloaded(unfinished(start), segments), None);
    let bad = Some(BadPacket::Contradiction);
    assert_eq!(offloaded(unfinished(start + 1), segments), bad);
    assert_eq!(offloaded(None, segments), bad);
    assert_eq!(offloaded(unfinished(bytes.len()), None), bad);
    let other = Some(Segments { cut: Cut::Tcp6, size: 1 });
    assert_eq!(offloaded(unfinished(start), other), bad);
    let nothing = Some(Segments { cut: Cut::Tcp4, size: 0 });
    assert_eq!(offloaded(unfinished(start), nothing), bad);
}

/// A small frame must not take the time of many thousand packets.
#[test]
fn a_frame_with_too_many_segments_is_refused() {
    let segments = Some(Segments { cut: Cut::Tcp4, size: 1 });
    for (payload, wanted) in [(1500, None), (1501, Some(BadPacket::Segments))] {
        let (bytes, start) = frame(false, 0, protocol::TCP, &tcp(&vec![7; payload]));
        let unfinished = Some(Unfinished { start: start as u16, offset: 16 });
        assert_eq!(Packet::offloaded(&bytes, unfinished, segments).err(), wanted);
    }
}

/// Each segment has the checksum in its own header; another offset may lie beyond a small segment's
/// end.
#[test]
fn a_checksum_that_is_not_the_transports_is_refused() {
    let mut datagram = vec![0; 8 + 1000];
    datagram[4..6].copy_from_slice(&1008_u16.to_be_bytes());
    let (bytes, start) = frame(false, 0, protocol::UDP, &datagram);
    let segments = Some(Segments { cut: Cut::Udp, size: 8 });
    let made = |offset| {
        Packet::offloaded(&bytes, Some(Unfinished { start: start as u16, offset }), segments)
    };
    assert!(made(6).is_ok());
    assert_eq!(made(188), Err(BadPacket::Contradiction));
}
