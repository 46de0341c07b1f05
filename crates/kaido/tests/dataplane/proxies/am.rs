//! End.AM: the packet keeps its SRH, and has its last segment as its destination.

use std::net::Ipv6Addr;

use testkit::Tap;

use super::*;
use crate::numbered::outer_source;

const LAST: &str = "fd00:9::1";
const NEXT: &str = "fd00:2::5";

fn sid(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

/// Returns a packet to the function, then to right, then to an address of right.
fn packet(number: u32) -> Vec<u8> {
    let path = [THERE, NEXT, LAST].map(sid);
    let srh = Srh { tag: number as u16, ..Srh::of_path(protocol::UDP, &path) };
    let udp = Udp::new(7, 7).around(&number.to_be_bytes()).unwrap();
    let outer = Ipv6::new(outer_source(number), path[0], protocol::ROUTING);
    outer.around(&srh.around(&udp).unwrap()).unwrap()
}

/// Checks that right receives such packets unchanged, at their next segment.
fn check(bed: &Bed, hops: u8) {
    let count = 500;
    let inside = bed.function.run(|| Tap::open("a")).unwrap();
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let tap = bed.net.left.run(|| Tap::open("port")).unwrap();
    let before = bed.counts(THERE);
    for number in 0..count {
        tap.send(&frame(&bed.net, &packet(number)));
        for (tap, dst, hop_limit) in [(&inside, LAST, 63), (&received, NEXT, 62 - hops)] {
            let (outer, srh, rest) = loop {
                let frame = tap.next().unwrap_or_else(|| panic!("{number} {:#}", bed.reasons()));
                if let Some(found) = datagram_of(&frame) {
                    break found;
                }
            };
            let srh = srh.unwrap();
            let sent = Udp::new(7, 7).around(&number.to_be_bytes()).unwrap();
            assert_eq!(rest, sent);
            assert_eq!((outer.src, outer.dst), (outer_source(number), sid(dst)));
            assert_eq!((srh.segments_left, srh.tag), (1, number as u16));
            assert_eq!(srh.path().collect::<Vec<_>>(), [THERE, NEXT, LAST].map(sid));
            assert_eq!(outer.hop_limit, hop_limit);
        }
    }
    let count = u64::from(count);
    assert_eq!(bed.counts(THERE), before.map(|before| before + count));
}

#[test]
fn root_a_packet_is_to_its_last_segment_for_a_bump() {
    let mut bed = Bed::bridged();
    bed.start("  fd00:1::f:0:1111: { behavior: End.AM, to: f0, back: f1 }\n");
    check(&bed, 0);
    // Without an SRH the destination cannot be restored.
    let own = bed.function.run(|| Tap::open("b")).unwrap();
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let ends = ["fd00:a::2", LAST].map(sid);
    let udp = Udp::new(7, 7).around(b"own").unwrap();
    let send = |packet: &[u8]| own.send(&frame(&bed.net, packet));
    send(&Ipv6::new(ends[0], ends[1], protocol::UDP).around(&udp).unwrap());
    bed.expect_dropped("no-srh", 1);
    let path = [THERE, NEXT, LAST].map(sid);
    let srh = Srh::of_path(protocol::UDP, &path);
    let with = |left: u8, dst: &str| {
        let mut inside = srh.around(&udp).unwrap();
        inside[3] = left;
        Ipv6::new(ends[0], sid(dst), protocol::ROUTING).around(&inside).unwrap()
    };
    send(&with(3, LAST));
    send(&with(1, "fd00:9::2"));
    bed.expect_dropped("malformed", 2);
    assert!(bed.is_quiet(&received));
}

#[test]
fn root_a_packet_is_to_its_last_segment_for_a_router() {
    let mut bed = Bed::routed();
    bed.start("  fd00:1::f:0:1111: { behavior: End.AM, to: f0, back: f1, via: \"fd00:5::2\" }\n");
    let tap = bed.net.left.run(|| Tap::open("port")).unwrap();
    // Resolve the neighbor before the test.
    tap.send(&frame(&bed.net, &packet(0)));
    bed.expect_counts(THERE, [1, 1]);
    check(&bed, 1);
}
