//! Segment lists that pass this node more than once.

use super::*;
use crate::functions::expect;

/// Sends left's packets to 10.9.0.1 by these segments.
fn go_by(bed: &Bed, segments: &str) {
    let route = format!(
        "route replace 10.9.0.0/24 encap seg6 mode encap segs {segments} dev port mtu 1500"
    );
    ip(&bed.net.left, &[&route]);
}

/// Returns the packets sent to and returned by the proxies since `before`.
fn counted(bed: &Bed, before: [[u64; 2]; 2]) -> [[u64; 2]; 2] {
    let now = [bed.counts(THERE), bed.counts(BACK)];
    [0, 1].map(|sid| [0, 1].map(|way| now[sid][way] - before[sid][way]))
}

/// Both proxies in one direction, and the second in the other. (The lists of a file, such as those
/// of End.AS, start elsewhere.)
#[test]
fn root_the_next_segment_of_a_proxy_may_be_this_nodes_own() {
    let mut bed = Bed::bridged();
    bed.start("");
    go_by(&bed, "fd00:1::f:0:1111,fd00:1::f:0:2222,fd00:2::d4");
    for first in ["End.AD", "End.AM"] {
        bed.apply(&format!(
            "  {THERE}: {{ behavior: {first}, to: f0, back: f1 }}\n  \
             {BACK}: {{ behavior: End.AD, to: f1, back: f0 }}\n"
        ));
        let before = [bed.counts(THERE), bed.counts(BACK)];
        expect(&bed.net, "10.9.0.1", true);
        expect(&bed.net, "-s 1400 10.9.0.1", true);
        assert_eq!(counted(&bed, before), [[6; 2], [12; 2]], "{first}");
    }
}

#[test]
fn root_a_segment_of_this_node_without_a_sid_is_dropped() {
    let mut bed = Bed::bridged();
    bed.start(super::bump::BUMP);
    go_by(&bed, "fd00:1::f:0:1111,fd00:1::f:0:3333,fd00:2::d4");
    expect(&bed.net, "10.9.0.1", false);
    bed.expect_dropped("no-route", 3);
}
