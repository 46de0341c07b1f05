//! Known pitfalls of other implementations (listed in the design), and differences found by random
//! packets.

use bpf::srv6::types::reason;
use wire::Checksum;
use wire::protocol::{IPV4, IPV6, ROUTING};

use super::compare::Same;
use super::node::with_node;
use super::packets::*;
use crate::bed::ip;

const ETHERNET: u8 = 143;

/// `flags` and `last_entry` are different bytes.
#[test]
fn root_regression_flags_and_last_entry() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(22));
        for flags in [0, 1, 0x20, 0xff] {
            let path = ["fd00:1::e0", "fd00:2::1", "fd00:2::2"];
            let mut srh = Routing::new(&path, 2, IPV4);
            (srh.flags, srh.tag) = (flags, 0xabcd);
            let frame = frame6(&V6::new("fd00:9::1", path[0], ROUTING).with(&srh.with(&inner)));
            let out = node.forwards(&frame);
            assert_eq!(out[54..62], [IPV4, 6, 4, 1, 2, flags, 0xab, 0xcd]);
            for last_entry in [0, 1, 3, 0xff] {
                let mut frame = frame.clone();
                frame[58] = last_entry;
                node.declines(&frame);
            }
        }
    });
}

/// A reduced header contains exactly its list, even after a longer one.
#[test]
fn root_regression_reduced_leaks_nothing_stale() {
    with_node(|node| {
        node.configure_all(true);
        for (n, segments) in [(7, 10), (5, 1), (4, 0), (6, 4), (5, 1)] {
            let inner = V4::new("10.1.0.1", &format!("10.10.{n}.9")).with(&udp(30));
            let out = node.forwards(&frame4(&inner));
            let srh = if segments > 0 { 8 + 16 * segments } else { 0 };
            assert_eq!((out.len(), &out[54 + srh..]), (54 + srh + inner.len(), &inner[..]));
            for (at, segment) in out[54..54 + srh].chunks(16).skip(1).enumerate() {
                assert!(at >= segments || segment.len() < 16 || segment[8..] != [0; 8]);
            }
        }
    });
}

/// The outer payload length is computed from the packet, not from the frame. The payload length of
/// an inner IPv6 packet excludes its header, the outer one includes it.
#[test]
fn root_regression_lengths_come_from_the_packet() {
    with_node(|node| {
        node.configure_all(true);
        for padding in [0, 1, 6, 300] {
            let v4 = V4::new("10.1.0.1", "10.10.5.9").with(&udp(0));
            let mut frame = frame4(&v4);
            frame.resize(frame.len() + padding, 0xee);
            let out = node.forwards(&frame);
            assert_eq!(u16::from_be_bytes([out[18], out[19]]), 24 + v4.len() as u16);
            let v6 = V6::new("fd00:9::1", "fd00:3:5::9", 17).with(&udp(0));
            let mut frame = frame6(&v6);
            frame.resize(frame.len() + padding, 0xee);
            let out = node.forwards(&frame);
            assert_eq!(u16::from_be_bytes([out[18], out[19]]), 24 + 40 + 8);
            for sid in ["fd00:1::e0", "fd00:1::e1", "fd00:1::b6"] {
                let mut frame = on_path(&[sid, "fd00:2::1"], 1, IPV6, &v6);
                frame.resize(frame.len() + padding, 0xee);
                node.forwards(&frame);
            }
            let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(0));
            let mut frame = on_path(&["fd00:1::d4"], 0, IPV4, &inner);
            frame.resize(frame.len() + padding, 0xee);
            assert_eq!(node.forwards(&frame).len(), 14 + inner.len());
        }
    });
}

/// A packet that is too big by one byte is left to the kernel, which replies; a packet that just
/// fits is not.
#[test]
fn root_regression_too_big_by_one() {
    with_node(|node| {
        node.configure_all(true);
        ip("link set dev r mtu 1500");
        let wide = |length: usize| V4::new("10.1.0.1", "10.2.0.1").with(&vec![7; length - 20]);
        for (over, fits) in [(0, true), (1, false)] {
            let mut check = |frame: Vec<u8>| {
                let same = node.both(&frame).unwrap();
                assert_eq!(matches!(same, Same::Forwarded(_)), fits, "{same:?}");
            };
            let v4 = V4::new("10.1.0.1", "10.10.5.9").with(&vec![7; 1500 - 64 - 20 + over]);
            check(frame4(&v4));
            let v6 = V6::new("fd00:9::1", "fd00:3:5::9", 17).with(&vec![7; 1500 - 64 - 40 + over]);
            check(frame6(&v6));
            check(on_path(&["fd00:1::e0", "fd00:2::1"], 1, IPV4, &wide(1500 - 80 + over)));
            check(on_path(&["fd00:1::e1", "fd00:2::1"], 1, IPV4, &wide(1500 - 40 + over)));
            check(on_path(&["fd00:1::b6", "fd00:2::8"], 1, IPV4, &wide(1500 - 160 + over)));
            check(on_path(&["fd00:1::d4"], 0, IPV4, &wide(1500 + over)));
            let inner = V6::new("fd00:9::9", "fd00:8::9", 17).with(&vec![7; 1460 + over]);
            check(on_path(&["fd00:1::d6"], 0, IPV6, &inner));
            // A failed redirect would not be counted.
            let inner = ethernet(&[], 0x88b5, &vec![7; 1500 + over]);
            check(on_path(&["fd00:1::d2"], 0, ETHERNET, &inner));
        }
    });
}

/// Checksum values around zero when the hop limit is decremented.
#[test]
fn root_regression_checksum_carries() {
    with_node(|node| {
        node.configure_all(true);
        for wanted in [0x0000, 0x0001, 0x00ff, 0xfeff, 0xfefe, 0xff00, 0xfffe, 0xfffd, 0x8000] {
            let mut inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
            let found = (0..=0xffffu16).any(|id| {
                inner[4..6].copy_from_slice(&id.to_be_bytes());
                inner[10..12].fill(0);
                let sum = Checksum::default().with(&inner[..20]).finish();
                inner[10..12].copy_from_slice(&sum.to_be_bytes());
                sum == wanted
            });
            assert!(found || wanted == 0xffff, "{wanted:x}");
            node.forwards(&on_path(&["fd00:1::d4"], 0, IPV4, &inner));
            // An invalid checksum stays equally invalid.
            inner[10] ^= 0x55;
            node.forwards(&on_path(&["fd00:1::d4"], 0, IPV4, &inner));
        }
    });
}

/// A packet to an unresolved neighbor is left to the kernel.
#[test]
fn root_regression_no_neighbor_yet() {
    with_node(|node| {
        node.configure_all(true);
        ip("-6 route add fd00:c::/64 dev r");
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
        let frame = on_path(&["fd00:1::e0", "fd00:c::7"], 1, IPV4, &inner);
        node.declines(&frame);
        assert_eq!(node.reasons(), [(reason::REASON_NO_NEIGHBOR.0, 1, 0)]);
        ip("neigh replace fd00:c::7 lladdr 02:00:00:00:00:0b dev r nud permanent");
        assert_eq!(node.settle().len(), 1);
        node.forwards(&frame);
    });
}

/// Invalid sources, from which routers do not forward: the kernel drops the packets before it looks
/// up a SID.
#[test]
fn root_regression_invalid_sources_are_dropped() {
    with_node(|node| {
        node.configure_all(true);
        for src in ["::", "::1", "::ffff:10.0.0.1", "ff0e::1", "fe80::1"] {
            for (sid, next) in [("e0", Some("fd00:2::1")), ("d4", None), ("d6", None)] {
                let sid = format!("fd00:1::{sid}");
                let path: Vec<&str> = [Some(sid.as_str()), next].into_iter().flatten().collect();
                let (next_header, inner) = match path.len() {
                    1 if sid.ends_with("d6") => {
                        (IPV6, V6::new("fd00:9::9", "fd00:8::9", 17).with(&udp(9)))
                    }
                    _ => (IPV4, V4::new("10.1.0.1", "10.2.0.1").with(&udp(9))),
                };
                let srh = Routing::new(&path, path.len() - 1, next_header).with(&inner);
                node.declines(&frame6(&V6::new(src, &sid, ROUTING).with(&srh)));
            }
            node.declines(&frame6(&V6::new(src, "fd00:3:5::9", 17).with(&udp(9))));
            let inner = V6::new(src, "fd00:8::9", 17).with(&udp(9));
            node.declines(&on_path(&["fd00:1::d6"], 0, IPV6, &inner));
        }
    });
}

/// For a decapsulating SID, the kernel does not validate the SRH that it removes, and it searches
/// for the inner packet after other extension headers too.
#[test]
fn root_regression_decapsulation_after_odd_headers() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
        let options = [&[IPV4, 0, 1, 4, 0, 0, 0, 0][..], &inner].concat();
        for (at, value) in [(58, 7), (58, 0xff), (55, 3)] {
            let mut frame = on_path(&["fd00:1::d4"], 0, IPV4, &inner);
            frame[at] = value;
            assert!(!matches!(node.both(&frame).unwrap(), Same::Forwarded(_)));
        }
        let same = node.both(&on_path(&["fd00:1::d4"], 0, 60, &options)).unwrap();
        assert_eq!(same, Same::Left(true));
    });
}

/// End.X looks up the neighbor, so it must check itself for a multicast next segment.
#[test]
fn root_regression_end_x_to_many() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(9));
        for next in ["ff00::", "ff01::5", "ff02::1", "ff0e::1", "::1", "fe80::7"] {
            for sid in ["fd00:1::a0", "fd00:1::e0", "fd00:1::70"] {
                node.declines(&on_path(&[sid, next], 1, IPV4, &inner));
            }
        }
    });
}

/// The payload length of a jumbogram is 0 (RFC 2675), which must not be taken for padding.
#[test]
fn root_regression_jumbograms_stay_whole() {
    with_node(|node| {
        node.configure_all(true);
        let options = [&[17u8, 0, 0xc2, 4, 0, 1, 0, 0][..], &udp(500)].concat();
        for dst in ["fd00:1::e0", "fd00:1::d6", "fd00:3:5::9"] {
            let mut frame = frame6(&V6::new("fd00:9::1", dst, 0).with(&options));
            frame[18..20].fill(0);
            assert_eq!(node.program(&frame).frame, frame);
            node.declines(&frame);
        }
    });
}

/// Frames in several buffers (xdp.frags).
#[test]
fn root_regression_jumbo_frames() {
    let widen = |name: &&str| ip(&format!("link set dev {name} mtu 9000"));
    with_node(move |node| {
        node.configure_all(true);
        node.among_peers(|| ["lp", "rp"].iter().for_each(widen));
        ["l", "r"].iter().for_each(widen);
        for payload in [3400, 3500, 5000, 8700] {
            let v4 = V4::new("10.1.0.1", "10.2.0.1").with(&udp(payload));
            for sid in ["fd00:1::e0", "fd00:1::e1", "fd00:1::b6"] {
                node.forwards(&on_path(&[sid, "fd00:2::1"], 1, IPV4, &v4));
            }
            let mut padded = on_path(&["fd00:1::d4"], 0, IPV4, &v4);
            node.forwards(&padded);
            padded.extend([0; 40]);
            node.forwards(&padded);
            let inner = ethernet(&[], 0x0800, &v4);
            node.forwards(&on_path(&["fd00:1::d2"], 0, ETHERNET, &inner));
            node.forwards(&frame4(&V4::new("10.1.0.1", "10.10.5.9").with(&udp(payload))));
        }
    });
}
