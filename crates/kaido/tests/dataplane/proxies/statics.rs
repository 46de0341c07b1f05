//! End.AS: returning packets get the outer header that the file gives.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use testkit::Tap;

use super::*;
use crate::functions::expect;
use crate::numbered::{Numbered, datagram};

/// Returns static proxies for both directions; `ends` are the last segments, `via` the function's
/// addresses.
fn sids(ends: [&str; 2], via: [&str; 2]) -> String {
    let via =
        via.map(|via| if via.is_empty() { String::new() } else { format!(", via: \"{via}\"") });
    format!(
        "  {THERE}: {{ behavior: End.AS, to: f0, back: f1, policy: [\"{}\"]{} }}\n  \
         {BACK}: {{ behavior: End.AS, to: f1, back: f0, policy: [\"{}\"]{} }}\n",
        ends[0], via[0], ends[1], via[1],
    )
}

#[test]
fn root_a_bump_and_nat_may_be_behind_a_static_proxy() {
    for (mut bed, via) in [
        (Bed::bridged(), ["", ""]),
        (Bed::routed(), ["fd00:5::2", "fd00:6::2"]),
        (Bed::routed(), ["10.5.0.2", "10.6.0.2"]),
    ] {
        bed.start("");
        for (ends, address) in [
            (["fd00:2::d4", "fd00:4::d4"], "10.9.0.1"),
            (["fd00:2::d6", "fd00:4::d6"], "fd00:9::1"),
        ] {
            bed.apply(&sids(ends, via));
            // The kernel cannot resolve an IPv4 neighbor for an IPv6 packet.
            let passes = via[0] != "10.5.0.2" || address == "10.9.0.1";
            expect(&bed.net, address, passes);
            if passes {
                expect(&bed.net, &format!("-s 1400 {address}"), true);
                let [into, back] = bed.counts(THERE);
                assert!(into == back && into >= 6, "{into} {back}");
            } else {
                bed.expect_dropped("wrong-payload", 3);
            }
        }
    }
}

#[test]
fn root_every_packet_leaves_in_the_header_that_the_file_says() {
    let mut bed = Bed::bridged();
    bed.start(
        "  fd00:1::f:0:1111: { behavior: End.AS, to: f0, back: f1, \
         policy: { segments: [\"fd00:2::1\", \"fd00:2::d4\"], form: H.Encaps } }\n",
    );
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&bed.net);
    let count = 500;
    numbered.send(0..count);
    let path: [Ipv6Addr; 2] = ["fd00:2::1", "fd00:2::d4"].map(|sid| sid.parse().unwrap());
    // The kernel keeps no order between CPUs.
    let mut missing: BTreeSet<_> = (0..count).collect();
    while !missing.is_empty() {
        let frame = received.next().expect("another one");
        let Some((outer, srh, inner)) = datagram_of(&frame) else { continue };
        let number = u32::from_be_bytes(*inner.last_chunk().unwrap());
        assert!(missing.remove(&number), "{number}");
        assert_eq!(inner, datagram(number, 1111 + (number % 2) as u16), "{number}");
        assert_eq!((outer.src, outer.dst), ("fd00:1::".parse().unwrap(), path[0]));
        let srh = srh.unwrap();
        assert_eq!((srh.path().collect::<Vec<_>>(), srh.segments_left), (path.to_vec(), 1));
        assert_eq!(usize::from(outer.payload_len), frame.len() - 14 - 40);
    }
    // Packets that the function itself sends leave in the same way: the node cannot tell them
    // apart.
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    let ends = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
    let udp = Udp::new(5, 5).around(b"own").unwrap();
    let packet = Ipv4::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap();
    let mut frame = Vec::new();
    let (dst, src) = (Mac([2, 9, 9, 9, 9, 9]), Mac([2, 8, 8, 8, 8, 8]));
    Ethernet { dst, src, ethertype: ethertype::IPV4 }.emit(&mut frame);
    frame.extend(&packet);
    own.send(&frame);
    let came = std::iter::from_fn(|| received.next()).find_map(|frame| datagram_of(&frame));
    let (outer, _, inner) = came.unwrap();
    assert_eq!((outer.dst, inner), (path[0], packet));
    // Except for packets with an expired hop limit, and for truncated headers.
    let six = |hop_limit| {
        let ends = ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().unwrap());
        let packet = Ipv6 { hop_limit, ..Ipv6::new(ends[0], ends[1], protocol::UDP) };
        let mut frame = Vec::new();
        Ethernet { dst, src, ethertype: ethertype::IPV6 }.emit(&mut frame);
        frame.extend(packet.around(&udp).unwrap());
        frame
    };
    own.send(&six(1));
    bed.expect_dropped("hop-limit", 1);
    own.send(&six(64)[..14 + 39]);
    bed.expect_dropped("truncated", 1);
    assert!(bed.is_quiet(&received));
    own.send(&six(2));
    let came = std::iter::from_fn(|| received.next()).find_map(|frame| datagram_of(&frame));
    assert_eq!(came.unwrap().0.hop_limit, 1);
}
