//! SIDs that the kernel has on its own, outside of the file's locators.

use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use super::{Bed, SOURCE, through, to_everybody, with_priority, with_tenant};
use crate::net::{ip, redirect_through_ifb};

/// The first can be imported, the second cannot.
const SIDS: [&str; 2] = ["fd00:7::1", "fd00:7::2"];

fn add_sids(bed: &Bed) {
    let route =
        |sid, action| format!("-6 route add {sid}/128 encap seg6local action {action} dev r");
    let lines = [route(SIDS[0], "End"), route(SIDS[1], "End.B6 srh segs fd00:2::8")];
    ip(&bed.net.node, &lines.each_ref().map(String::as_str));
}

/// Returns the SIDs that left reaches, each with the frame that reaches it.
fn reached(bed: &mut Bed) -> Vec<String> {
    let mut found = Vec::new();
    for sid in SIDS {
        let packet = |mark: &str| through(sid, SOURCE, mark);
        let dress: [fn(&mut Vec<u8>); 3] = [|_| {}, with_priority, to_everybody];
        for (name, dress) in ["plain", "priority", "everybody"].into_iter().zip(dress) {
            if bed.passes_as(packet, dress) {
                found.push(format!("{sid} {name}"));
            }
        }
    }
    found
}

#[test]
fn root_no_sid_that_only_the_kernel_has_is_reached() {
    let mut bed = Bed::new();
    add_sids(&bed);
    for (dataplane, import) in [("xdp", true), ("xdp", false), ("kernel", true)] {
        let which = format!("dataplane: {dataplane}\nimport: {import}\n");
        let tenant = format!("import: {import}\n{}", with_tenant(dataplane, "", ""));
        let with_sources = format!("{which}sources: [\"fd00:a::/64\"]\n");
        let with_others = format!("{which}sources: [\"fd00:5::/48\"]\n");
        bed.apply("{ l: {}, r: {} }", &which);
        let open = reached(&mut bed);
        assert!(open.len() >= 4, "{dataplane}, import {import}: nothing to test: {open:?}");
        for (ports, more) in [
            ("{ l: { sids: false }, r: {} }", &which),
            ("{ l: { sids: false }, r: {} }", &with_others),
            ("{ l: {}, r: {} }", &with_others),
            ("{ l: { tenant: blue }, r: {} }", &tenant),
        ] {
            bed.apply(ports, more);
            assert_eq!(reached(&mut bed), [""; 0], "{ports} {more}");
        }
        bed.apply("{ l: {}, r: {} }", &with_sources);
        assert_eq!(reached(&mut bed), open, "from inside, {dataplane}, import {import}");
    }
}

/// A SID that is added later is closed too.
#[test]
fn root_no_sid_that_is_new_in_the_kernel_is_reached_from_an_edge_port() {
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "import: false\n");
    add_sids(&bed);
    let rules = || crate::net::show(&bed.net.node, "-6 rule");
    let is_closed = || SIDS.iter().all(|sid| rules().contains(sid)).then_some(());
    testkit::until(std::time::Duration::from_secs(10), is_closed, rules);
    assert_eq!(reached(&mut bed), [""; 0]);
}

/// With this many entries, the kernel does not get those of the file.
#[test]
fn root_no_sid_of_the_kernel_is_reached_with_more_entries_than_the_kernel_gets() {
    let mut bed = Bed::new();
    add_sids(&bed);
    let mut many = String::from(
        "source: fd00:a::1\nlimits: { prefixes: 70000 }\ntenants:\n  many:\n    routes:\n",
    );
    for number in 0..66_000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        writeln!(many, "      10.{a}.{b}.{c}/32: [\"fd00:2::9\"]").unwrap();
    }
    bed.apply("{ l: { sids: false }, r: {} }", &many);
    assert_eq!(reached(&mut bed), [""; 0], "an edge port");
    bed.apply("{ l: { tenant: many }, r: {} }", &many);
    assert_eq!(reached(&mut bed), [""; 0], "a tenant's port");
}

/// The sender of a frame may leave its checksum to a device, and chooses where that writes it: into
/// addresses that have been checked.
#[test]
fn root_no_checksum_is_written_into_addresses() {
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "");
    let offload = || netlink::set_offload("port", netlink::Offload::TxChecksum, true).unwrap();
    bed.net.left.run(offload).unwrap();
    let own = bed.net.left.run(|| testkit::Tap::open("port")).unwrap();
    let (priority, none) = ([0x81, 0, 0, 0], [0; 0]);
    let mut dropped = bed.dropped("irregular");
    for (tags, start, is_dropped) in [
        // In the source address, at the end of the destination address, and behind it.
        (&none[..], 14 + 8, true),
        (&none, 14 + 38, true),
        (&none, 14 + 40, false),
        (&[priority, priority].concat(), 14 + 8 + 38, true),
        (&[priority, priority].concat(), 14 + 8 + 40, false),
        // More tags than anybody needs.
        (&priority.repeat(10), 14 + 40 + 40, true),
    ] {
        let mut frame = bed.frame(&super::plain(SOURCE, "fd00:b::2", "sum"));
        frame.splice(12..12, tags.iter().copied());
        own.send_with_checksum(&frame, start, 0);
        // Processed after it.
        assert!(bed.passes(|mark| super::plain(SOURCE, "fd00:b::2", mark)));
        dropped += u64::from(is_dropped);
        assert_eq!(bed.dropped("irregular"), dropped, "{tags:x?}, {start}");
    }
}

/// tc passes packets without its programs that an ifb of the sender has redirected.
#[test]
fn root_a_packet_past_the_filter_is_dropped_by_netfilter() {
    const COUNT: u64 = 64;
    let mut bed = Bed::new();
    bed.apply("{ l: { sids: false }, r: {} }", "");
    let plain = |mark: &str| super::plain(SOURCE, "fd00:b::2", mark);
    assert!(bed.passes(plain));
    redirect_through_ifb(&bed.net.left, "port");
    let offload = || netlink::set_offload("port", netlink::Offload::TxChecksum, true).unwrap();
    bed.net.left.run(offload).unwrap();
    let own = bed.net.left.run(|| testkit::Tap::open("port")).unwrap();
    let received = bed.net.right.run(|| testkit::Tap::open("port")).unwrap();
    // The sum is written into the source address.
    let frame = bed.frame(&plain("sum"));
    let before = bed.dropped("irregular");
    (0..COUNT).for_each(|_| own.send_with_checksum(&frame, 14 + 8, 0));
    let dropped = || {
        let list =
            || Command::new("nft").args(["list", "chain", "inet", "kaido-guard", "ports"]).output();
        let listed = bed.net.node.run(list).unwrap().unwrap().stdout;
        let listed = String::from_utf8(listed).unwrap();
        let count = listed.split("counter packets ").nth(1).expect(&listed);
        count.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let all = || bed.dropped("irregular") - before + dropped();
    testkit::until(
        Duration::from_secs(5),
        || (all() >= COUNT).then_some(()),
        || format!("{} of {COUNT}", all()),
    );
    assert!(dropped() > 0, "no packet was past the filter");
    let mut frames = std::iter::from_fn(|| received.next());
    assert!(!frames.any(|frame| frame.windows(3).any(|bytes| bytes == b"sum")));
}
