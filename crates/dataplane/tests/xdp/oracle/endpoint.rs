//! Every endpoint behavior that this kernel supports.

use std::net::Ipv6Addr;

use bpf::measure::verdict;
use bpf::srv6::types;
use wire::protocol::{IPV4, IPV6, ROUTING};

use super::compare::Same;
use super::node::with_node;
use super::packets::*;
use crate::bed::address;

const ETHERNET: u8 = 143;

/// Returns one inner packet of each type, as next header and bytes.
fn inners() -> Vec<(u8, Vec<u8>)> {
    vec![
        (IPV4, V4::new("10.1.0.1", "10.2.0.1").with(&udp(22))),
        (IPV6, V6::new("fd00:9::9", "fd00:8::9", 17).with(&udp(500))),
        (ETHERNET, ethernet(&[], 0x0800, &V4::new("10.1.0.1", "10.2.0.1").with(&udp(99)))),
        (17, udp(3)),
    ]
}

fn dst(frame: &[u8]) -> Ipv6Addr {
    Ipv6Addr::from(<[u8; 16]>::try_from(&frame[38..54]).unwrap())
}

/// Returns a path of `count` segments in which `sid` has `left` segments after it.
fn path_through<'a>(sid: &'a str, count: usize, left: usize, rest: &'a [String]) -> Vec<&'a str> {
    (0..count).map(|n| if n + left + 1 == count { sid } else { rest[n].as_str() }).collect()
}

#[test]
fn root_oracle_end_goes_on() {
    with_node(|node| {
        node.configure_all(true);
        let others = super::network::segments(10);
        for sid in ["fd00:1::e0", "fd00:1::e1", "fd00:1::a0", "fd00:1::a1", "fd00:1::70"] {
            for (count, left) in [(2, 1), (3, 1), (3, 2), (5, 1), (5, 4), (10, 1), (10, 9)] {
                let path = path_through(sid, count, left, &others);
                for (next_header, inner) in inners() {
                    let frame = on_path(&path, left, next_header, &inner);
                    let out = node.forwards(&frame);
                    assert_eq!(dst(&out), path[count - left].parse::<Ipv6Addr>().unwrap());
                    let popped = sid == "fd00:1::e1" && left == 1;
                    let srh = if popped { 8 + 16 * count } else { 0 };
                    assert_eq!(out.len(), frame.len() - srh);
                }
            }
        }
    });
}

/// A reduced list lacks the active segment (RFC 8754 section 4.1.1): Segments Left is one more than
/// Last Entry.
#[test]
fn root_oracle_end_takes_reduced_lists() {
    with_node(|node| {
        node.configure_all(true);
        for sid in ["fd00:1::e0", "fd00:1::e1", "fd00:1::a0", "fd00:1::70"] {
            for rest in [&["fd00:2::1"][..], &["fd00:2::1", "fd00:2::2"]] {
                let mut srh = Routing::new(rest, rest.len(), IPV4);
                let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(22));
                let outer = V6::new("fd00:9::1", sid, ROUTING);
                let out = node.forwards(&frame6(&outer.with(&srh.with(&inner))));
                assert_eq!(dst(&out), "fd00:2::1".parse::<Ipv6Addr>().unwrap());
                srh.left += 1;
                node.declines(&frame6(&outer.with(&srh.with(&inner))));
            }
        }
    });
}

#[test]
fn root_oracle_end_without_a_next_segment() {
    with_node(|node| {
        node.configure_all(true);
        for sid in
            ["fd00:1::e0", "fd00:1::e1", "fd00:1::a0", "fd00:1::70", "fd00:1::b6", "fd00:1::b5"]
        {
            for (next_header, inner) in inners() {
                node.declines(&on_path(&[sid], 0, next_header, &inner));
                node.declines(&on_path(&["fd00:2::1", sid], 0, next_header, &inner));
                node.declines(&frame6(&V6::new("fd00:9::1", sid, next_header).with(&inner)));
            }
        }
    });
}

#[test]
fn root_oracle_next_csid() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(22));
        // Blocks of 4, 2, 1, 6 and 7 bytes, nodes of 2, 2, 1, 4 and 1 bytes. The fourth one is
        // End.X.
        for (sid, next) in [
            ("fd00:1:2:7:8:9:a:b", "fd00:1:7:8:9:a:b:0"),
            ("fd00:1:2:0:0:0:0:7", "fd00:1:0:0:0:0:7:0"),
            ("fc01:1:2:3:4:5:6:7", "fc01:2:3:4:5:6:7:0"),
            ("fc02:304:506:708:90a:b0c:d0e:f10", "fc03:405:607:809:a0b:c0d:e0f:1000"),
            ("fd00:4:4:1:2:3:4:5", "fd00:4:4:3:4:5:0:0"),
            ("fc03:1:1:1:abcd:0:0:1", "fc03:1:1:ab:cd00:0:0:100"),
            ("fd00:1:5:7:8:9:a:b", "fd00:1:7:8:9:a:b:0"),
        ] {
            let bare = frame6(&V6::new("fd00:9::1", sid, IPV4).with(&inner));
            assert_eq!(dst(&node.forwards(&bare)), next.parse::<Ipv6Addr>().unwrap());
            // The SRH is not read while the address contains a segment.
            let path = [sid, "fd00:2::1"];
            assert_eq!(dst(&node.forwards(&on_path(&path, 1, IPV4, &inner))), {
                next.parse::<Ipv6Addr>().unwrap()
            });
        }
        // The list in the address is exhausted: the SRH continues it, or the packet is not
        // forwarded.
        for sid in
            ["fd00:1:2::", "fc01:1::", "fc02::", "fd00:4:4:1:2::", "fc03:1:1:1::", "fd00:1:5::"]
        {
            let out = node.forwards(&on_path(&[sid, "fd00:2::1"], 1, IPV4, &inner));
            assert_eq!(dst(&out), "fd00:2::1".parse::<Ipv6Addr>().unwrap());
            node.declines(&frame6(&V6::new("fd00:9::1", sid, IPV4).with(&inner)));
        }
        // The next segment is local: the kernel processes the packet again.
        node.declines(&frame6(&V6::new("fd00:9::1", "fd00:1:2:2::", IPV4).with(&inner)));
    });
}

#[test]
fn root_oracle_decapsulation() {
    with_node(|node| {
        node.configure_all(true);
        let (prefix, action, fill) = super::network::DT46;
        node.sid(prefix, action, true, fill);
        for (sid, takes) in [
            ("fd00:1::d2", &[ETHERNET][..]),
            ("fd00:1::d4", &[IPV4]),
            ("fd00:1::d5", &[IPV4]),
            ("fd00:1::d6", &[IPV6]),
            ("fd00:1::d7", &[IPV6]),
            ("fd00:1::d8", &[IPV6]),
            ("fd00:1::d9", &[IPV6]),
            ("fd00:1::da", &[IPV4]),
            ("fd00:1::db", &[IPV6]),
        ] {
            for (next_header, inner) in inners() {
                if (sid, next_header) == ("fd00:1::db", IPV4) {
                    continue;
                }
                let bare = frame6(&V6::new("fd00:9::1", sid, next_header).with(&inner));
                let last = on_path(&[sid], 0, next_header, &inner);
                let of_three = on_path(&["fd00:2::1", "fd00:2::2", sid], 0, next_header, &inner);
                for frame in [&bare, &last, &of_three] {
                    if takes.contains(&next_header) {
                        node.forwards(frame);
                    } else {
                        node.declines(frame);
                    }
                }
                node.declines(&on_path(&[sid, "fd00:2::1"], 1, next_header, &inner));
            }
        }
        // The kernel's End.DT46 requires a VRF; End.DX4 does the same lookup.
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(22));
        let of_dx4 = node.forwards(&on_path(&["fd00:1::d4"], 0, IPV4, &inner));
        assert_eq!(node.program(&on_path(&["fd00:1::db"], 0, IPV4, &inner)).frame, of_dx4);
    });
}

#[test]
fn root_oracle_dx2_takes_tagged_frames() {
    with_node(|node| {
        node.configure_all(true);
        let inner = V4::new("10.1.0.1", "10.2.0.1").with(&udp(99));
        for tags in [&[][..], &[0x8100_2007], &[0x88a8_0064, 0x8100_2007]] {
            let frame = ethernet(tags, 0x0800, &inner);
            assert_eq!(node.forwards(&on_path(&["fd00:1::d2"], 0, ETHERNET, &frame)), frame);
        }
        // Frames that exceed the port's MTU.
        for length in [1900, 2000, 2001, 2004] {
            let frame = ethernet(&[], 0x88b5, &vec![7; length]);
            let packet = frame6(&V6::new("fd00:9::1", "fd00:1::d2", ETHERNET).with(&frame));
            if packet.len() <= 2014 {
                node.forwards(&packet);
            }
        }
    });
}

/// RFC 8986 section 4.13: the inner header advances to the next segment, the outer header is that
/// of the policy. Both hop limits are decremented at most once.
#[test]
fn root_oracle_b6_encaps() {
    with_node(|node| {
        node.configure_all(true);
        for (next_header, inner) in inners() {
            for left in [1, 2] {
                let path = ["fd00:1::b6", "fd00:2::8", "fd00:2::9"];
                let path = &path[..left + 1];
                let frame = on_path(path, left, next_header, &inner);
                let out = node.forwards(&frame);
                assert_eq!((out.len(), out[21]), (frame.len() + 40 + 8 + 32, 63));
                // The inner hop limit, Segments Left and destination.
                assert_eq!((out[94 + 7], usize::from(out[94 + 43])), (64, left - 1));
                assert_eq!(dst(&out[80..]), "fd00:2::8".parse::<Ipv6Addr>().unwrap());
            }
        }
        for hop_limit in 0..3 {
            let mut outer = V6::new("fd00:9::1", "fd00:1::b6", ROUTING);
            outer.hop_limit = hop_limit;
            let srh = Routing::new(&["fd00:1::b6", "fd00:2::8"], 1, 17).with(&udp(9));
            let same = node.both(&frame6(&outer.with(&srh))).unwrap();
            assert_eq!(hop_limit > 1, matches!(same, Same::Forwarded(_)));
        }
    });
}

/// The packet's own SRH stays as it is, behind another one whose last segment is the SID.
#[test]
fn root_oracle_b6_insert() {
    with_node(|node| {
        node.configure_all(true);
        for (next_header, inner) in inners() {
            for left in [1, 2] {
                let path = &["fd00:1::b5", "fd00:2::8", "fd00:2::9"][..left + 1];
                let frame = on_path(path, left, next_header, &inner);
                let out = node.forwards(&frame);
                assert_eq!((out.len(), out[21]), (frame.len() + 8 + 3 * 16, 63));
                assert_eq!(dst(&out), "fd00:2::1".parse::<Ipv6Addr>().unwrap());
                let inserted = &out[54..54 + 8 + 3 * 16];
                assert_eq!((inserted[0], inserted[3]), (ROUTING, 2));
                assert_eq!(inserted[8..24], "fd00:1::b5".parse::<Ipv6Addr>().unwrap().octets());
                assert_eq!(out[54 + 56..], frame[54..]);
            }
        }
        for hop_limit in 0..3 {
            let mut outer = V6::new("fd00:9::1", "fd00:1::b5", ROUTING);
            outer.hop_limit = hop_limit;
            let srh = Routing::new(&["fd00:1::b5", "fd00:2::8"], 1, 17).with(&udp(9));
            let same = node.both(&frame6(&outer.with(&srh))).unwrap();
            assert_eq!(hop_limit > 1, matches!(same, Same::Forwarded(_)));
        }
    });
}

/// The kernel lacks USD (RFC 8986 section 4.16.3). It must decapsulate exactly as End.DX4 and
/// End.DX6 do, and only IP.
#[test]
fn root_usd_removes_the_same_headers_as_dx() {
    with_node(|node| {
        node.configure_all(true);
        let usd = types::sid {
            address: address("fd00:1::5d"),
            length: 128,
            behavior: types::behavior::BEHAVIOR_END.0 as u8,
            flags: (types::sid_flag::SID_USD.0 | types::sid_flag::SID_PSP.0) as u8,
            counter: node.counter(),
            ..Default::default()
        };
        node.sids.push(node.plane.sids.add(usd).unwrap());
        for (next_header, inner) in inners() {
            let at_end = |sid| on_path(&["fd00:2::1", sid], 0, next_header, &inner);
            let bare = |sid| frame6(&V6::new("fd00:9::1", sid, next_header).with(&inner));
            let like = if next_header == IPV4 { "fd00:1::d4" } else { "fd00:1::d6" };
            for [usd, dx] in [["fd00:1::5d", like].map(at_end), ["fd00:1::5d", like].map(bare)] {
                if [IPV4, IPV6].contains(&next_header) {
                    assert_eq!(node.program(&usd), node.program(&dx));
                } else {
                    assert_eq!(node.program(&usd).verdict, verdict::DROP);
                }
            }
            let onwards = on_path(&["fd00:1::5d", "fd00:2::1"], 1, next_header, &inner);
            let psp = on_path(&["fd00:1::e1", "fd00:2::1"], 1, next_header, &inner);
            assert_eq!(node.program(&onwards), node.program(&psp));
        }
    });
}
