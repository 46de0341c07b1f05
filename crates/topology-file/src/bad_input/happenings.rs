//! Applications, events, cross traffic, tests.

use model::topology::Action;

use super::super::parse;
use super::{expect, lab};

#[test]
fn applications() {
    let lab = |text: &str| {
        lab(&format!(
            "links: [{{h1-r1: {{rate: 10mbit}}}}, {{r1-h2: {{rate: 50mbit, reverse: {{rate: 20mbit}}}}}}]\n\
             applications:\n  x: {{{text}}}"
        ))
    };
    expect(&lab("to: h2"), &[("5:3", "`from` is missing", "add `from:`")]);
    expect(&lab("from: h1, to: h2"), &[("5:3", "needs a demand", "write one such as 50mbit")]);
    expect(
        &lab("from: h1, to: h2, demand: 60mbit"),
        &[("5:33", "the demand 60mbit exceeds the rate of every link", "at most 50mbit")],
    );
    expect(
        &lab("from: h1, to: h1, demand: 1mbit"),
        &[("5:21", "`h1` sends to itself", "write another node after `to`")],
    );
    expect(
        &lab("from: h11, to: 10.0.0.1/8, demand: 1mbit"),
        &[
            ("5:13", "no node is called `h11`", "did you mean `h1`?"),
            ("5:22", "`10.0.0.1/8` has host bits set", "write 10.0.0.0/8"),
        ],
    );
    expect(
        &lab("from: h1, to: h3, demand: 1mbit"),
        &[("5:21", "`h3` has no link", "under `links:`")],
    );
    expect(
        &lab("from: h1, to: h2, demand: 1mbit, protocol: icmp, ports: 80, source-ports: 1-2"),
        &[
            ("5:56", "ports need a protocol that has ports", "write protocol tcp"),
            ("5:67", "source ports need a protocol", "write protocol tcp"),
        ],
    );
    expect(
        &lab("from: h1, to: h2, demand: 1mbit, protocol: tcp, ports: 70000, dscp: 64, class: best"),
        &[
            ("5:62", "`70000` is not a port", "write 5201"),
            ("5:75", "`64` is not a DSCP", "use 0 to 63"),
            ("5:86", "`best` is not known here", "bandwidth, low-latency"),
        ],
    );
}

#[test]
fn events_name_a_link_and_one_action() {
    let lab = |text: &str| lab(&format!("links: [h1-r1, r1-h2: {{delay: 5ms}}]\nevents:\n{text}"));
    let one = |text: &str| lab(&format!("  - {{at: 1s, link: r1-h2, {text}}}"));
    expect(
        &lab("  - {at: 10s, link: r1-r2, down: 5s}\n  - {at: 1s, link: h1-r1}"),
        &[
            ("5:21", "no link is called `r1-r2`", "did you mean"),
            ("6:5", "an event does one thing", "write one of `down:`, `set:` and `traffic:`"),
        ],
    );
    expect(&lab("  - {at: 10, link: h1-r1, down: 5s}"), &[("5:10", "`10` has no unit", "")]);
    expect(
        &lab("  - {at: -1s, link: h1-r1, down: 5s}"),
        &[("5:10", "`-1s` is not a duration", "")],
    );
    expect(&one("down: 0s"), &[("5:33", "down for no time", "5s")]);
    expect(&one("down: 1s, from: h2"), &[("5:37", "cut in both directions", "remove it")]);
    expect(&one("set: {delay: 9ms}, silent: true"), &[("5:46", "`silent` goes with `down`", "")]);
    expect(&one("set: {delay: 9ms}, from: h1"), &[("5:52", "`h1` is not on `r1-h2`", "r1, h2")]);
    expect(&one("set: {}"), &[("5:27", "nothing to change", "{delay: 40ms}")]);
    expect(
        &one("set: {cost: 5, delay: 9ms}"),
        &[("5:33", "an event cannot give this `cost`", "remove it")],
    );
    expect(
        &lab(
            "  - {at: 1s, link: r1-h1, set: {delay: 9ms}}\n  - {at: 1s, link: r1-h1, down: 1s, silent: true}",
        ),
        &[
            (
                "5:33",
                "`h1-r1` is a link of the kernel, which cannot be given `delay`",
                "engine: true",
            ),
            ("6:37", "which cannot be cut silently", "engine: true"),
        ],
    );
}

#[test]
fn events_of_one_link_fit_each_other() {
    let lab = |text: &str| lab(&format!("links: [h1-r1, r1-h2: {{delay: 5ms}}]\nevents:\n{text}"));
    // Events are checked in order of time, not in file order; one may begin when another ends.
    let good = "  - {at: 9s, link: r1-h2, down: 1s}\n  - {at: 4s, link: h2-r1, down: 5s}";
    assert!(parse("lab.yaml", &lab(good)).is_ok());
    expect(
        &lab("  - {at: 9s, link: r1-h2, down: 1s}\n  - {at: 4s, link: h2-r1, down: 5.1s}"),
        &[("5:10", "is down at 9s already: from 4s to 9.1s", "shorter")],
    );
    expect(
        &lab(
            "  - {at: 9s, link: r1-h2, set: {delay: 1ms}}\n  - {at: 4s, link: h2-r1, from: h2, set: {jitter: 3ms}}",
        ),
        &[("5:27", "from h2, then: a jitter of 3ms is more than the delay of 1ms", "change both")],
    );
    let queue = "  - {at: 9s, link: r1-h2, from: h2, set: {queue: 9p}}\n";
    let never = "from h2, then: a queue without a rate never fills";
    expect(&lab(queue), &[("5:37", never, "change both")]);
    let rate = |rate: &str| format!("{queue}  - {{at: 4s, link: r1-h2, set: {{rate: {rate}}}}}");
    assert!(parse("lab.yaml", &lab(&rate("1mbit"))).is_ok());
    expect(&lab(&rate("none")), &[("5:37", never, "change both")]);
}

#[test]
fn events_can_unset_every_setting() {
    let of = |set: &str| {
        let event = format!("events:\n  - {{at: 1s, link: r1-h2, set: {{{set}}}}}");
        let link = "delay: 5ms, rate: 1mbit, jitter: {file: jitter.txt}";
        lab(&format!("links: [h1-r1, r1-h2: {{{link}}}]\n{event}"))
    };
    let keys = ["rate", "queue", "delay", "jitter", "loss", "reorder", "duplicate", "corrupt"];
    for key in keys {
        let topology = parse("lab.yaml", &of(&format!("{key}: none"))).unwrap();
        let change = crate::link_change(&format!("{key}=none")).unwrap();
        assert_eq!(topology.events[0].action, Action::Set(vec![change]), "{key}");
    }
    let kernel = of("rate: none").replace("r1-h2, set", "h1-r1, set");
    assert!(parse("lab.yaml", &kernel).is_ok());
    for (key, value) in [
        ("cost", "5"),
        ("trace", "a.csv"),
        ("filter", "[{protocol: tcp}]"),
        ("mtu", "1500"),
        ("reverse", "{loss: 1%}"),
    ] {
        let message = format!("an event cannot give this `{key}`");
        expect(&of(&format!("{key}: {value}, delay: 9ms")), &[("5:33", &message, "remove it")]);
    }
    expect(&of("delay: 20"), &[("5:40", "`20` has no unit", "")]);
    expect(&of("loss: [none]"), &[("5:33", "what the option becomes, or `none`", "")]);
    // Without a rate it does not conflict with the trace.
    let trace = of("rate: none").replace("rate: 1mbit", "trace: a.trace");
    assert!(parse("lab.yaml", &trace).is_ok());
}

#[test]
fn cross_traffic_must_be_possible() {
    let one = |text: &str| {
        lab(&format!(
            "links: [h1-r1, r1-h2: {{delay: 5ms}}]\nevents:\n  - {{at: 1s, link: r1-h2, from: r1, traffic: {{{text}}}}}"
        ))
    };
    let good =
        "rate: 10mbit, for: 10s, pattern: on-off, on: 1s, off: 2s, size: 1500b, family: ipv6";
    assert!(parse("lab.yaml", &one(good)).is_ok());
    expect(
        &one("rate: 1mbit, for: 1s, size: 60b, family: ipv6"),
        &[("5:75", "has 60 bytes", "from 70b")],
    );
    expect(&one("rate: 1mbit, for: 1s, size: 1500"), &[("5:75", "`1500` has no unit", "")]);
    expect(
        &one("rate: 100gbit, for: 1s"),
        &[("5:53", "cross traffic cannot have 100gbit", "8000mbit")],
    );
    expect(&one("rate: 1mbit, for: 0s"), &[("5:65", "cross traffic needs time", "10s")]);
    expect(&one("rate: 1mbit, for: 1s, on: 1s"), &[("5:69", "`on` goes with", "pattern: on-off")]);
    expect(
        &one("rate: 1mbit, for: 1s, pattern: on-off, on: 1s"),
        &[("5:78", "`on-off` needs to know how long", "add `on:`")],
    );
    expect(
        &one("rate: 1mbit, for: 1s, pattern: on-off, on: 1us, off: 1s"),
        &[("5:90", "`on` is 1µs, and a packet takes 8ms", "a longer time")],
    );
    expect(&one("rate: 1mbit"), &[("5:37", "for", "")]);
    let plain = one("rate: 1mbit, for: 1s").replace("r1-h2: {delay: 5ms}", "r1-h2");
    expect(&plain, &[("5:37", "cannot be given cross traffic", "engine: true")]);
    let both = one("rate: 1mbit, for: 1s").replace(" from: r1,", "");
    expect(&both, &[("5:27", "goes in one direction", "add `from:`")]);
}

#[test]
fn tests_check_one_thing() {
    let lab = |text: &str| lab(&format!("links: [h1-r1, r1-h2]\n{text}"));
    let tests = |text: &str| lab(&format!("tests:\n  - {{{text}}}"));
    expect(&tests("from: h1, ping: h1"), &[("5:22", "`h1` pings itself", "two different nodes")]);
    expect(&tests("from: h1, ping: h9"), &[("5:22", "no node is called `h9`", "")]);
    expect(&tests("ping: h1"), &[("5:5", "`from` is missing", "add `from:`")]);
    expect(&tests("from: h1"), &[("5:5", "a test checks one thing", "write one of")]);
    expect(
        &tests("from: h1, ping: h2, present: true"),
        &[(
            "5:26",
            "`present` does not go with this test",
            "from, ping, rtt, loss, unreachable, count, family, within",
        )],
    );
    expect(
        &tests("from: h1, ping: h2, rtt: 48ms..40ms"),
        &[("5:31", "the range `48ms..40ms` is empty", "smaller value first")],
    );
    expect(
        &tests("from: h1, to: h2, throughput: 90..100mbit"),
        &[("5:36", "`90` has no unit", "write 90bit")],
    );
    expect(&tests("on: r1, route: 10.0.5.1/24"), &[("5:21", "bits set", "10.0.5.0/24")]);
    expect(
        &tests("from: h1, ping: h2, unreachable: true, rtt: 1ms..2ms"),
        &[("5:45", "`rtt` is about answers", "remove it")],
    );
    expect(&tests("from: h1, ping: h2, loss: 5%"), &[("5:32", "not a range", "0%..5%")]);
    expect(&tests("from: h1, ping: h2, count: 0"), &[("5:33", "0 pings are not", "1 to 10000")]);
    expect(&tests("from: h1, ping: h2, family: ipx"), &[("5:34", "not known", "ipv4, ipv6")]);
    let emulated =
        tests("from: r1, ping: h1").replace("r1: {router: frr}", "r1: {router: virtual}");
    expect(&emulated, &[("5:12", "no program can run on `r1`", "not virtual")]);
    expect(&tests("from: h1, ping: h3"), &[("5:22", "`h3` has no link", "add a link")]);
    expect(
        &tests("from: h1, to: h1, throughput: 1mbit..2mbit"),
        &[("5:20", "`h1` sends to itself", "two different nodes")],
    );
    expect(
        &tests("on: r1, route: 10.0.5.0/24, via: h3"),
        &[("5:39", "`h3` is not a neighbor of `r1`", "name one of h1, h2")],
    );
    expect(
        &tests("on: r1, route: 10.0.5.0/24, via: h1, present: false"),
        &[("5:34", "an absent route has no next hop", "remove `via`")],
    );
}
