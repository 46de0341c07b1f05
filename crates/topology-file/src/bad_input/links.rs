//! Impairments of links.

use super::super::parse;
use super::{expect, lab};

#[test]
fn impairments_that_contradict_themselves_are_refused() {
    let link = |options: &str| lab(&format!("links: [{{r1-r2: {{{options}}}}}]"));
    for (options, place, message, help) in [
        ("delay: 1ms, jitter: 2ms", "3:38", "a jitter of 2ms is more than", "longer delay"),
        ("jitter: 2ms normal", "3:26", "a jitter of 2ms is more than", "longer delay"),
        ("reorder: 1%", "3:18", "`reorder` has no effect without a delay", "add `delay:`"),
        ("rate: 1mbit, trace: lte", "3:31", "a rate and a trace", "remove it, or `rate`"),
        ("trace: lte, reverse: {rate: 1mbit}", "3:40", "a rate and a trace", "or `trace`"),
        ("loss: 101%", "3:24", "`101%` is not a percentage", ""),
        ("loss: 0.1", "3:24", "`0.1` has no unit", "write 0.1%"),
        ("delay: 20", "3:25", "`20` has no unit", ""),
        ("delay: -1ms", "3:25", "`-1ms` is not a duration", ""),
        ("delay: 1ms, jitter: 1ms odd", "3:38", "`odd` is not a distribution", ""),
        ("rate: 1mbit, queue: 250p fq_codel", "3:38", "`fq_codel` is not a queue discipline", ""),
        ("rate: 1bit", "3:24", "a link's rate is at least 8bit, and 1bit is less", "10mbit"),
        ("rate: 0bit", "3:24", "must be more than zero", ""),
        ("rate: 99999999999999999999tbit", "3:24", "is not a number", ""),
        ("loss: {gilbert-elliott: {p: 1%}}", "3:25", "`r` is missing", "add `r:`"),
    ] {
        expect(&link(options), &[(place, message, help)]);
    }
}

#[test]
fn settings_that_netem_lacks_are_refused() {
    let one = |nodes: &str, options: &str| {
        format!(
            "name: x\nnodes: {{a: {{}}, b: {nodes}}}\nlinks: [{{a-b: {{engine: {options}}}}}]\n"
        )
    };
    assert!(parse("lab.yaml", &one("{}", "netem, delay: 1ms, rate: 1mbit")).is_ok());
    for (options, message, help) in [
        ("netem, trace: lte", "netem has no traces", "remove it, or `engine: netem`"),
        ("netem, rate: 1mbit, queue: 9p codel", "netem has no queue discipline", "the emulator"),
        ("netem, filter: [{protocol: udp}]", "netem has no filters", "the emulator"),
        ("netem, delay: 1ms, jitter: {file: x}", "netem has no jitter from a file", ""),
        ("netem2", "`netem2` is not an engine", "true, false or netem"),
    ] {
        expect(&one("{}", options), &[("3:24", message, help)]);
    }
    let message = "netem cannot do this link: `b` is not a namespace";
    expect(&one("{router: virtual}", "netem"), &[("3:24", message, "write `engine: true`")]);
}

#[test]
fn filters_that_no_packet_meets_are_refused() {
    let link = |filter: &str| lab(&format!("links: [{{r1-r2: {{filter: [{{{filter}}}]}}}}]"));
    for (filter, place, message, help) in [
        ("protocol: icmp, ports: 80", "3:44", "icmp has no ports", "tcp, udp or sctp"),
        (
            "from: 10.0.0.0/8, to: 'fd00::1'",
            "3:50",
            "no packet can match: 10.0.0.0/8 and fd00::1/128",
            "each family",
        ),
        ("from: 10.0.0.1/8", "3:34", "has host bits set", ""),
        ("", "3:27", "says nothing", "`loss: 100%`"),
        ("from: h1", "3:34", "`h1` is not a prefix", "or an address"),
    ] {
        expect(&link(filter), &[(place, message, help)]);
    }
    let there = "to: 10.9.0.1, protocol: udp, ports: 53";
    let reverse = lab(&format!(
        "links: [{{r1-r2: {{filter: [{{{there}}}], reverse: {{filter: [{{protocol: icmp, ports: 1}}]}}}}}}]"
    ));
    expect(&reverse, &[("3:106", "icmp has no ports", "remove it")]);
    let topology = parse("lab.yaml", &link("from: 'fd00::1', to: 'fd02::/16'")).unwrap();
    let filter = &topology.node("r1").unwrap().interfaces[0].impairments.filters[0];
    assert_eq!(filter.from.unwrap().to_string(), "fd00::1/128");
    let topology = parse("lab.yaml", &link(there)).unwrap();
    let filter = &topology.node("r1").unwrap().interfaces[0].impairments.filters[0];
    assert_eq!(filter.to.unwrap().to_string(), "10.9.0.1/32");
}

#[test]
fn a_queue_has_room_for_a_frame() {
    let link = |options: &str| {
        format!("name: x\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{{a-b: {{{options}}}}}]\n")
    };
    let says = "a queue of 1513 bytes has no room for a frame of 1514";
    expect(&link("rate: 1mbit, queue: 1513b"), &[("3:36", says, "at least 1p, or `engine: true`")]);
    expect(&link("engine: netem, rate: 1mbit, queue: 1513b"), &[("3:51", says, "")]);
    let says = "a queue of 1 bytes has no room for a frame of 9014";
    let both = "mtu: 9000, rate: 1mbit, queue: 1mb, reverse: {queue: 1b}";
    expect(&link(both), &[("3:69", says, "")]);
    for fine in ["rate: 1mbit, queue: 1514b", "rate: 1mbit, queue: 1b, engine: true"] {
        assert!(parse("x", &link(fine)).is_ok(), "{fine}");
    }
}
