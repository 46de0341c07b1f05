//! End.AD with a function that routes and changes addresses.

use testkit::Tap;

use super::*;
use crate::functions::expect;
use crate::numbered::{Numbered, receive};

pub(super) const ROUTED: &str = "  fd00:1::f:0:1111: { behavior: End.AD, to: f0, back: f1, via: \"fd00:5::2\" }\n  \
     fd00:1::f:0:2222: { behavior: End.AD, to: f1, back: f0, via: \"fd00:6::2\" }\n";

#[test]
fn root_each_packet_gets_its_own_header_back_from_nat() {
    let mut bed = Bed::routed();
    bed.start(ROUTED);
    // Resolve the neighbors before the test.
    expect(&bed.net, "10.9.0.1", true);
    let before = bed.counts(THERE)[0];
    let count = (20_000.0 / slower()) as u32;
    let received = bed.net.right.run(|| Tap::open("port")).unwrap();
    let numbered = Numbered::new(&bed.net);
    std::thread::scope(|scope| {
        scope.spawn(|| receive(&received, count));
        numbered.send(0..count);
    });
    assert_eq!(bed.counts(THERE), [before + u64::from(count); 2], "{:#}", bed.reasons());
    // The addresses are changed, and restored.
    let source = bed.net.right.run(|| Tap::open("port")).unwrap();
    expect(&bed.net, "10.9.0.1", true);
    let is_changed = |frame: Vec<u8>| frame.windows(4).any(|bytes| bytes == [10, 7, 0, 2]);
    assert!(std::iter::from_fn(|| source.next()).any(is_changed));
    expect(&bed.net, "fd00:9::1", true);
    expect(&bed.net, "-s 1400 fd00:9::1", true);
}

#[test]
fn root_streams_pass_nat_both_ways() {
    let mut bed = Bed::routed();
    bed.start(ROUTED);
    bed.expect_streams();
}

/// The function has one interface, of which only a link-local address is known.
#[test]
fn root_one_interface_leads_there_and_back() {
    let mut bed = Bed::new();
    ip(&bed.net.node, &["addr add 10.5.0.1/24 dev f0", "addr add fd00:5::1/64 dev f0 nodad"]);
    ip(
        &bed.function,
        &[
            "addr add 10.5.0.2/24 dev a",
            "addr add fe80::2/64 dev a nodad",
            "addr add fd00:5::2/64 dev a nodad",
            "route add default via 10.5.0.1",
            "-6 route add default via fd00:5::1",
        ],
    );
    bed.start(
        "  fd00:1::f:0:1111: { behavior: End.AD, to: f0, via: \"fe80::2\" }\n  \
         fd00:1::f:0:2222: { behavior: End.AD, to: f0, via: \"fe80::2\" }\n",
    );
    for address in ["10.9.0.1", "fd00:9::1"] {
        expect(&bed.net, address, true);
    }
}
