//! Files that are wrong: where, why, and what to do; and that no text makes the reader panic.

use proptest::prelude::*;

use super::good_input::EVERYTHING;
use super::*;

/// A file with hosts h1, h2, h3, FRR routers r1, r2, and `rest` from line 3 on.
fn lab(rest: &str) -> String {
    format!(
        "name: a\nnodes: {{h1: {{}}, h2: {{}}, h3: {{}}, r1: {{router: frr}}, r2: {{router: frr}}}}\n{rest}\n"
    )
}

/// A file whose nodes begin in line 3.
fn nodes(rest: &str) -> String {
    format!("name: a\nnodes:\n{rest}\n")
}

fn found(text: &str) -> Vec<String> {
    let problems = match parse("lab.yaml", text) {
        Ok(_) => panic!("no problem found in\n{text}"),
        Err(problems) => problems,
    };
    let render = problems.render(false);
    let problems = problems.problems.iter().map(|p| {
        assert!(render.contains(&format!("lab.yaml:{}:{}", p.line, p.column)), "{render}");
        let help = p.help.as_deref().unwrap_or("");
        format!("{}:{} {} | {help}", p.line, p.column, p.message)
    });
    problems.collect()
}

/// The problems of `text`: place, part of the message, part of the fix.
#[track_caller]
fn expect(text: &str, expected: &[(&str, &str, &str)]) {
    let found = found(text);
    let matches = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, (place, message, help))| {
            let (said, fix) = found.split_once(" | ").unwrap();
            said.starts_with(&format!("{place} ")) && said.contains(message) && fix.contains(help)
        });
    assert!(matches, "{text}\nfound {found:#?}\nexpected {expected:#?}");
}

#[test]
fn not_yaml() {
    expect("", &[("1:1", "the file is empty", "at least `name:`")]);
    expect("# only a comment\n", &[("1:1", "the file is empty", "at least `name:`")]);
    expect("name: [a\nnodes: {}\n", &[("2:6", "this is not YAML", "check the indentation")]);
    expect("- a\n", &[("1:1", "expected a map of `key: value`, found a list", "")]);
    expect(&nodes("  r1: [frr]"), &[("3:3", "expected a map of `key: value`, found a list", "")]);
    let large = format!("name: a\n#{}", "x".repeat(4 * 1024 * 1024));
    expect(&large, &[("1:1", "larger than 4 MiB", "smaller lab")]);
    expect(&lab("name: b"), &[("3:1", "`name` is given twice", "rename or remove")]);
    expect(
        &nodes("  r1: {router: frr}\n  r1: {router: linux}"),
        &[("4:3", "`r1` is given twice", "rename or remove")],
    );
}

#[test]
fn keys_and_values() {
    let mixed = "name: a\nnodes: {r1: {router: frr}, r2: {router: linux}}\nlinks: [r1-r2]\n";
    expect(mixed, &[("3:9", "route by different protocols", "give both the same `routing:`")]);
    expect(&lab("lniks: []"), &[("3:1", "unknown key `lniks`", "did you mean `links`? allowed")]);
    expect(&lab("bananas: 1"), &[("3:1", "unknown key `bananas`", "allowed here: name, seed")]);
    expect("nodes: {h1: {}}\n", &[("1:1", "`name` is missing", "add `name:`")]);
    expect(&lab("seed: many"), &[("3:7", "expected a whole number, found `many`", "")]);
    expect(&lab("mtu: 100"), &[("3:6", "an MTU of 100 is not possible", "write 1280 to 9000")]);
    expect("name: My Lab\nnodes: {h1: {}}\n", &[("1:7", "`My Lab` cannot name a lab", "a-z")]);
    expect(
        &lab(
            "controller: false\nlinks: [h1-r1]\napplications: {x: {from: h1, to: r1, demand: 1mbit}}",
        ),
        &[("3:1", "applications need a controller", "remove `controller: false`")],
    );
    expect("name: a\nnodes: {}\n", &[("2:1", "there are no nodes", "`h1: {}`")]);
    expect(
        &nodes("  h1:"),
        &[("3:5", "expected a map of `key: value`, found nothing", "write `{}`")],
    );
    expect(
        &nodes("  r1: {router: fr}"),
        &[("3:16", "`fr` is not known here", "did you mean `frr`? use frr, linux, virtual")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: maybe}"),
        &[("3:27", "expected true, false, or a", "")],
    );
    expect(&lab("links: [{r1-r2: {rte: 5mbit}}]"), &[("3:18", "unknown key `rte`", "`rate`?")]);
    expect(
        &lab("links:\n  - r1-r2:\n    rate: 5mbit"),
        &[("4:5", "a second key beside its name", "write `- r1-r2: {rate: 1gbit}`")],
    );
}

#[test]
fn everything_wrong_is_found_in_one_run() {
    expect(
        "name: a\nsed: 1\nmtu: big\nnodes:\n  r1: {router: cisco}\n  r2: {rooter: frr}\n\
         links:\n  - r1-r2: {rate: 100}\n",
        &[
            ("2:1", "unknown key `sed`", "did you mean `seed`"),
            ("3:6", "found `big`", ""),
            ("5:16", "`cisco` is not known", "use frr"),
            ("6:8", "unknown key `rooter`", "did you mean `router`"),
            ("8:19", "`100` has no unit", "write 100bit"),
        ],
    );
    // What was cut out is not missed a second time.
    expect(&lab("applications: {x: {from: [], to: h2}}"), &[("3:20", "found a list", "")]);
    expect(
        &lab("mtu: 100\nlinks: [r1-r9, h1-h1]"),
        &[
            ("3:6", "an MTU of 100", ""),
            ("4:9", "no node is called `r9`", ""),
            ("4:16", "linked to itself", "two different"),
        ],
    );
}

#[test]
fn units_are_required() {
    let link = |options: &str| lab(&format!("links: [{{r1-r2: {{{options}}}}}]"));
    expect(&link("rate: 5"), &[("3:24", "`5` has no unit", "write 5bit")]);
    expect(&link("rate: 5MBps"), &[("3:24", "`MBps` is no unit of bandwidth", "use bit")]);
    expect(&link("rate: 1gbit, queue: 250"), &[("3:38", "`250` has no unit", "250p (packets)")]);
    expect(&link("delay: 20"), &[("3:25", "`20` has no unit", "write 20ms")]);
    expect(&link("delay: -20ms"), &[("3:25", "`-20ms` is no duration", "write one such as 10ms")]);
    expect(&link("loss: 1"), &[("3:24", "expected a percentage such as 1%", "")]);
    expect(&link("loss: 101%"), &[("3:24", "`101%` is no percentage", "from 0% to 100%")]);
    expect(&link("loss: {gilbert-elliott: {p: 1%}}"), &[("3:25", "`r` is missing", "add `r:`")]);
    expect(&link("ipv4: 10.0.0.1/8"), &[("3:24", "bits set behind its length", "10.0.0.0/8")]);
    expect(&link("ipv6: 10.0.0.0/8"), &[("3:24", "no IPv6 prefix", "fd02:9::/64")]);
    expect(&link("cost: 0"), &[("3:24", "a cost is at least 1", "1 to 65535")]);
    expect(&link("queue: 250p"), &[("3:18", "no effect on a link without a rate", "add `rate:`")]);
    expect(&lab("ospf: {hello: 1}"), &[("3:15", "`1` has no unit", "1s")]);
    expect(&lab("ospf: {hello: 500ms}"), &[("3:15", "whole seconds", "write whole seconds")]);
    expect(&lab("ospf: {hello: 4s, dead: 4s}"), &[("3:25", "longer than `hello`", "a few times")]);
    expect(&lab("rip: {update: 1s}"), &[("3:15", "RIP counts in whole seconds", "from 5s")]);
    expect(&lab("rip: {update: 9s, timeout: 9s}"), &[("3:28", "longer than `update`", "a few")]);
    expect(&lab("isis: {hello: 2s, hold: 5s}"), &[("3:25", "2 to 100 times `hello`", "multiple")]);
    expect(&lab("isis: {hello: 601s}"), &[("3:15", "IS-IS counts in whole", "from 1s to 600s")]);
    expect(&lab("bgp: {keepalive: 1s, hold: 2s}"), &[("3:28", "BGP counts in whole", "from 3s")]);
    expect(&lab("bgp: {keepalive: 9s, hold: 9s}"), &[("3:28", "longer than `keepalive`", "a few")]);
    expect(&lab("bgp: {bfd: 1}"), &[("3:12", "expected", "")]);
}

#[test]
fn names() {
    for name in ["1r", "r-1", "r1_2", "lo", "a23456789012"] {
        let message = format!("`{name}` cannot name a node");
        expect(&nodes(&format!("  {name}: {{}}")), &[("3:3", &message, "use up to 11 of")]);
    }
    let links = |text: &str| lab(&format!("links: [{text}]"));
    expect(&links("r1-r2, r2-r11"), &[("3:16", "no node is called `r11`", "did you mean `r1`?")]);
    expect(&links("r1-tokyo"), &[("3:9", "no node is called `tokyo`", "add `tokyo: {}` under")]);
    expect(&links("r1-r1"), &[("3:9", "`r1` is linked to itself", "two different nodes")]);
    expect(&links("r1"), &[("3:9", "`r1` is no link", "write `r1-r2` for a link")]);
    expect(&links("{r1-r2: [h1]}"), &[("3:10", "is the name of a link", "lan0: [r1, r2")]);
    expect(&links("{h1: [r1, r2]}"), &[("3:10", "`h1` is a node and a LAN", "that no node has")]);
    expect(
        &links("{lan-0: {rate: 1gbit}}"),
        &[("3:10", "no node is called `lan`", ""), ("3:10", "no node is called `0`", "")],
    );
    expect(&links("{l_0: [r1, r2]}"), &[("3:10", "`l_0` cannot name a LAN", "use up to 11")]);
    expect(&links("{l: [r1, r2]}, {l: [h1, h2]}"), &[("3:25", "names two LANs", "rename")]);
    expect(&links("{l: [r1]}"), &[("3:10", "the LAN `l` has 1 members", "two to 1000")]);
    expect(&links("{l: [r1, r2, r1]}"), &[("3:22", "`r1` is on this LAN twice", "once")]);
    expect(&links("{l: {nodes: [r1, x9]}}"), &[("3:26", "no node is called `x9`", "add `x9")]);
    expect(
        &links("{l: {nodes: [r1, r2], reverse: {cost: 2}}}"),
        &[("3:31", "a LAN has no reverse", "remove it")],
    );
}

#[test]
fn nodes_and_routing() {
    expect(
        &nodes("  h1: {srv6: true, routing: [ospf], loopback: [10.0.0.1], config: x}"),
        &[
            ("3:8", "`srv6` is for routers", "add `router: frr`"),
            ("3:20", "`routing` is for routers", "add `router: frr`"),
            ("3:37", "`loopback` is for routers", "add `router: frr`"),
            ("3:59", "`config` is for routers", "add `router: frr`"),
        ],
    );
    expect(
        &nodes("  h1: {dataplane: xdp}"),
        &[("3:8", "`dataplane: xdp` is for routers, and `h1` is a host", "add `router: frr`")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: false, dataplane: xdp}"),
        &[("3:34", "`dataplane: xdp` is for SRv6, which `r1` does not speak", "`srv6: false`")],
    );
    expect(
        &nodes("  r1: {router: frr, dataplane: dpdk}"),
        &[("3:32", "`dpdk` is not known here", "use kernel, xdp")],
    );
    expect(&nodes("  r1: {router: linux, config: x}"), &[("3:23", "is for FRR", "router: frr")]);
    expect(
        &nodes("  r1: {router: linux, routing: [ospf]}"),
        &[("3:23", "`r1` runs no routing protocol", "[static]")],
    );
    expect(&lab("routing: [ospf, ospf]"), &[("3:17", "`ospf` is listed twice", "remove one")]);
    expect(
        &lab("routing: [ospf, rip]"),
        &[("3:17", "`rip` and `ospf` both route IPv4", "one protocol per")],
    );
    expect(
        &lab("routing: [isis, ripng]"),
        &[("3:17", "`ripng` and `isis` both route IPv6", "one protocol per")],
    );
    expect(
        &nodes("  r1: {router: frr, as: 65001}"),
        &[("3:21", "`as` is for BGP, which `r1` does not run", "add `routing: [bgp]`")],
    );
    expect(
        &nodes("  r1: {router: frr, routing: [bgp], as: 65535}"),
        &[("3:41", "65535 is no autonomous system's number", "write 65001")],
    );
    expect(&nodes("  h1: {as: 65001}"), &[("3:8", "`as` is for routers", "add `router: frr`")]);
    expect(&lab("routing: [eigrp]"), &[("3:11", "`eigrp` is not known here", "static, ospf")]);
    expect(
        &nodes("  r1: {router: frr, loopback: [10.0.0.1, 10.0.0.2]}"),
        &[("3:42", "a second loopback", "at most one IPv4")],
    );
    expect(
        &nodes("  r1: {router: frr, loopback: [10.0.0.1/32]}"),
        &[("3:32", "`10.0.0.1/32` is no address", "without a length")],
    );
}

#[test]
fn addresses_and_locators() {
    let links = |text: &str| lab(&format!("links:\n{text}"));
    expect(
        &links("  - r1-r2: {ipv4: 10.9.0.0/16}\n  - r1-r2: {ipv4: 10.9.3.0/24}"),
        &[("5:19", "`10.9.3.0/24` overlaps 10.9.0.0/16 of r1-r2", "do not overlap")],
    );
    expect(
        &links("  - r1-r2: {ipv6: 'fd02:9::/48'}\n  - h1-r2: {ipv6: 'fd02:9::/64'}"),
        &[("5:19", "`fd02:9::/64` overlaps fd02:9::/48 of r1-r2", "do not overlap")],
    );
    expect(&links("  - r1-r2: {ipv4: 127.0.0.0/24}"), &[("4:19", "a meaning of its own", "")]);
    expect(
        &links("  - r1-r2: {ipv6: 'fd00:0:5::/64'}"),
        &[("4:19", "`fd00:0:5::/64` is in fd00::/32, which is for locators", "outside the block")],
    );
    expect(&links("  - r1-r2: {ipv4: 10.9.0.0/32}"), &[("4:19", "no room for 2 nodes", "shorter")]);
    expect(
        &links("  - l: {nodes: [r1, r2, h1], ipv4: 10.9.0.0/30}"),
        &[("4:36", "`10.9.0.0/30` has no room for 3 nodes", "a shorter `ipv4:` prefix")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: {locator: 'fd99::/48'}}"),
        &[("3:37", "the locator `fd99::/48` is outside the block fd00::/32", "inside the block")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: {locator: 'fd00::1/48'}}"),
        &[("3:37", "`fd00::1/48` has bits set behind its length", "write fd00::/48")],
    );
    expect(
        &nodes(
            "  r1: {router: frr, srv6: {locator: 'fd00:0:7::/48'}}\n  \
             r2: {router: frr, srv6: {locator: 'fd00:0:7::/48'}}\n  \
             r3: {router: frr, srv6: {locator: 'fd00:0:7:8::/64'}}",
        ),
        &[
            ("4:37", "`fd00:0:7::/48` overlaps the locator of r1", "a locator of its own"),
            ("5:37", "`fd00:0:7:8::/64` overlaps the locator of r1", "a locator of its own"),
        ],
    );
    expect(
        &nodes(
            "  r1: {router: frr, loopback: [10.1.1.1]}\n  r2: {router: frr, loopback: [10.1.1.1]}",
        ),
        &[("4:21", "`10.1.1.1` is part of the loopback of r1", "do not overlap")],
    );
    expect(
        &nodes("  r1: {router: frr, loopback: ['fd00::1']}"),
        &[("3:21", "`fd00::1` is in fd00::/32, which is for locators", "outside the block")],
    );
}

#[test]
fn pools() {
    expect(
        &lab("addresses: {ipv4: 10.9.0.0/23}\nlinks: [h1-r1, r1-r2]"),
        &[("3:19", "the pool `ipv4` has no prefix for link 2, r1-r2", "a larger pool")],
    );
    expect(
        &lab("addresses: {loopbacks4: 10.8.0.0/31}"),
        &[("3:25", "the pool `loopbacks4` has no address for router 2", "a larger pool")],
    );
    expect(
        &lab("srv6: {block: 'fd00::/47'}"),
        &[("3:15", "no locator for router 2", "a larger block")],
    );
    expect(
        &lab("srv6: {block: 'fd00::/48'}"),
        &[
            ("3:15", "`fd00::/48` is no block for locators", "from /8 to /47"),
            ("3:15", "no locator for router 1", ""),
        ],
    );
    expect(
        &lab("addresses: {ipv6: 'fd00::/24'}"),
        &[("3:19", "the pool `ipv6` (fd00::/24) overlaps the block", "do not overlap")],
    );
    expect(
        &lab("addresses: {ipv4: 10.255.0.0/20}"),
        &[("3:1", "the pool `loopbacks4` leaves no prefix for links", "a smaller pool")],
    );
    expect(&lab("addresses: {ipv4: 10.9.0.0/25}"), &[("3:19", "too small a pool", "/23 or")]);
}

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
        &[("5:33", "the demand 60mbit is larger than every link", "at most 50mbit")],
    );
    expect(
        &lab("from: h1, to: h1, demand: 1mbit"),
        &[("5:21", "`h1` sends to itself", "write another node behind `to`")],
    );
    expect(
        &lab("from: h11, to: 10.0.0.1/8, demand: 1mbit"),
        &[
            ("5:13", "no node is called `h11`", "did you mean `h1`?"),
            ("5:22", "`10.0.0.1/8` has bits set behind its length", "write 10.0.0.0/8"),
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
            ("5:62", "`70000` is no port", "write 5201"),
            ("5:75", "`64` is no DSCP", "use 0 to 63"),
            ("5:86", "`best` is not known here", "bandwidth, low-latency"),
        ],
    );
}

#[test]
fn events_say_what_happens_to_which_link() {
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
    expect(&lab("  - {at: -1s, link: h1-r1, down: 5s}"), &[("5:10", "`-1s` is no duration", "")]);
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
                "`h1-r1` is a link of the kernel's own, which cannot be given `delay`",
                "engine: true",
            ),
            ("6:37", "which cannot be cut silently", "engine: true"),
        ],
    );
}

#[test]
fn events_of_one_link_fit_each_other() {
    let lab = |text: &str| lab(&format!("links: [h1-r1, r1-h2: {{delay: 5ms}}]\nevents:\n{text}"));
    // In the order of time, whatever the file's is; one may begin when the other ends.
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
    expect(&tests("from: h1, ping: h2, loss: 5%"), &[("5:32", "no range", "0%..5%")]);
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
        &[("5:39", "`h3` is no neighbour of `r1`", "name one of h1, h2")],
    );
    expect(
        &tests("on: r1, route: 10.0.5.0/24, via: h1, present: false"),
        &[("5:34", "leads to nobody", "remove `via`")],
    );
}

#[test]
fn rip_reaches_fourteen_hops() {
    let chain = |routers: usize, config: &str| {
        let mut text = String::from("name: x\nrouting: [ospf6, rip]\nnodes:\n");
        for n in 1..=routers {
            text += &format!("  r{n}: {{router: frr{config}}}\n");
        }
        text += "links: [r1-r2";
        for n in 2..routers {
            text += &format!(", r{n}-r{}", n + 1);
        }
        text + "]\n"
    };
    assert!(parse("lab.yaml", &chain(15, "")).is_ok());
    let message = "`r1` and `r16` are 15 hops apart, and RIP reaches no farther than 14";
    expect(&chain(16, ""), &[("2:1", message, "use another protocol")]);
    assert!(parse("lab.yaml", &chain(16, ", config: x")).is_ok());
}

#[test]
fn impairments_that_contradict_themselves_are_refused() {
    let link = |options: &str| lab(&format!("links: [{{r1-r2: {{{options}}}}}]"));
    for (options, place, message, help) in [
        ("delay: 1ms, jitter: 2ms", "3:38", "a jitter of 2ms is more than", "longer delay"),
        ("jitter: 2ms normal", "3:26", "a jitter of 2ms is more than", "longer delay"),
        ("reorder: 1%", "3:18", "`reorder` has no effect without a delay", "add `delay:`"),
        ("rate: 1mbit, trace: lte", "3:31", "a rate and a trace", "remove it, or `rate`"),
        ("trace: lte, reverse: {rate: 1mbit}", "3:40", "a rate and a trace", "or `trace`"),
        ("loss: 101%", "3:24", "`101%` is no percentage", ""),
        ("loss: 0.1", "3:24", "`0.1` has no unit", "write 0.1%"),
        ("delay: 20", "3:25", "`20` has no unit", ""),
        ("delay: -1ms", "3:25", "`-1ms` is no duration", ""),
        ("delay: 1ms, jitter: 1ms odd", "3:38", "`odd` is no distribution", ""),
        ("rate: 1mbit, queue: 250p fq_codel", "3:38", "`fq_codel` is no queue discipline", ""),
        ("rate: 1bit", "3:24", "a link's rate is at least 8bit, and 1bit is less", "10mbit"),
        ("rate: 0bit", "3:24", "must be more than zero", ""),
        ("rate: 99999999999999999999tbit", "3:24", "is no number", ""),
        ("loss: {gilbert-elliott: {p: 1%}}", "3:25", "`r` is missing", "add `r:`"),
    ] {
        expect(&link(options), &[(place, message, help)]);
    }
}

#[test]
fn netem_is_refused_what_it_cannot_do() {
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
        ("netem2", "`netem2` is no engine", "true, false or netem"),
    ] {
        expect(&one("{}", options), &[("3:24", message, help)]);
    }
    let message = "netem cannot do this link: `b` is no namespace";
    expect(&one("{router: virtual}", "netem"), &[("3:24", message, "write `engine: true`")]);
}

#[test]
fn thousands_of_problems_take_little_time() {
    let mut text = String::from("name: a\nnodes: {h1: {}}\nlinks:\n");
    for n in 0..20_000 {
        text += &format!("  - h1-x{n}\n");
    }
    let problems = parse("lab.yaml", &text).unwrap_err();
    assert_eq!(problems.problems.len(), 20_000);
    assert!(problems.to_string().ends_with("… and 19950 more problems"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        if let Err(problems) = parse("x", &text) {
            prop_assert!(!problems.problems.is_empty());
            problems.render(true);
        }
    }

    #[test]
    fn no_yaml_makes_it_panic(text in "([a-z&*<{}\\[\\],:|>?!%'\"#-]|: |- |\n|  ){0,80}") {
        if let Err(problems) = parse("x", &text) {
            problems.render(false);
        }
    }

    #[test]
    fn no_change_of_a_good_file_makes_it_panic(
        at in 0..EVERYTHING.len(),
        cut in 0_usize..40,
        insert in "[a-z0-9{}\\[\\],:/ \n.*&<-]{0,6}",
    ) {
        let end = (at + cut).min(EVERYTHING.len());
        let text = format!("{}{insert}{}", &EVERYTHING[..at], &EVERYTHING[end..]);
        match parse("x", &text) {
            Ok(topology) => prop_assert!(serde_json::to_string(&topology).is_ok()),
            Err(problems) => prop_assert!(problems.to_string().contains("error: ")),
        }
    }

    #[test]
    fn any_number_makes_an_address_or_a_problem(
        length4 in 0_u8..=32, length6 in 0_u8..=128, address4: u32, address6: u128, mtu: u16,
    ) {
        let v4 = ipnet::Ipv4Net::new(address4.into(), length4).unwrap().trunc();
        let v6 = ipnet::Ipv6Net::new(address6.into(), length6).unwrap().trunc();
        for keys in [
            format!("links:\n  - r1-r2: {{ipv4: '{v4}', ipv6: '{v6}', mtu: {mtu}}}"),
            format!("addresses: {{ipv4: '{v4}', ipv6: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
            format!("addresses: {{loopbacks4: '{v4}', loopbacks6: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
            format!("srv6: {{block: '{v6}'}}\nlinks: [r1-r2, h1-r1]"),
        ] {
            if let Ok(topology) = parse("x", &lab(&keys)) {
                let interfaces = topology.nodes.iter().flat_map(|node| &node.interfaces);
                for interface in interfaces {
                    let segment = &topology.segments[interface.segment];
                    prop_assert!(segment.ipv4.contains(&interface.ipv4.addr()));
                    prop_assert!(segment.ipv6.contains(&interface.ipv6.addr()));
                }
            }
        }
    }
}

#[test]
fn functions() {
    let node = |text: &str| format!("name: x\nnodes:\n  r1: {{{text}}}\n");
    let function = |text: &str| node(&format!("router: linux, functions: {{{text}}}"));
    let at = |column: u32| format!("3:{column}");
    let one = |text: &str, column: u32, message: &str, help: &str| {
        expect(text, &[(at(column).as_str(), message, help)]);
    };
    one(&node("functions: {fw: {}}"), 8, "`r1` is a host", "router: linux");
    let silent = node("router: linux, srv6: false, functions: {fw: {}}");
    one(&silent, 36, "which `r1` does not speak", "srv6: false");
    let kernel = node("router: linux, dataplane: kernel, functions: {fw: {}}");
    one(&kernel, 34, "no End.AN.NF", "dataplane: xdp");
    one(&function("Fw: {}"), 35, "`Fw` cannot name a function", "a-z");
    one(&function("fw: {bits: 33}"), 46, "an argument of 33 bits", "write 0 to 32");
    one(&function("fw: {mark: 0x10000}"), 46, "0x10000 has more than 16 bits", "`bits:`");
    one(&function("fw: {mark: -1}"), 46, "`-1` is no mark", "0x1111");
    one(&function("fw: {rules: a, file: b}"), 50, "in the file, or here", "remove it");
    one(&function("fw: {health: {run: a | b}}"), 54, "`|` is for a shell", "[sh, -c");

    let lab = |functions: &str| {
        format!(
            "name: x\nnodes: {{h1: {{}}, h2: {{}}, r1: {{router: linux, functions: {{fw: {{}}, ids: \
             {{}}}}}}}}\nlinks: [h1-r1, h2-r1]\napplications:\n  a: {functions}\n"
        )
    };
    let app = |functions: &str| {
        lab(&format!("{{from: h1, to: h2, demand: 1mbit, functions: {functions}}}"))
    };
    expect(&app("[fw, fww]"), &[("5:56", "no function is called `fww`", "did you mean `fw`?")]);
    expect(&app("[nat]"), &[("5:52", "no function is called `nat`", "functions: {nat: {}}")]);
    expect(&app("[fw, ids, fw]"), &[("5:61", "`fw` is listed twice", "remove one")]);
    let own = lab("{from: r1, to: h2, demand: 1mbit, functions: [fw]}");
    expect(&own, &[("5:52", "`fw` is at `r1` alone", "another router")]);
    let quick = lab("{from: h1, to: h2, class: low-latency, functions: [fw]}");
    expect(&quick, &[("5:45", "need the class `bandwidth`", "a demand")]);
    let many: Vec<String> = (0..10).map(|n| format!("f{n}")).collect();
    let text = format!(
        "name: x\nnodes: {{h1: {{}}, h2: {{}}, r1: {{router: linux, functions: {{{}: {{}}}}}}}}\nlinks: \
         [h1-r1, h2-r1]\napplications:\n  a: {{from: h1, to: h2, demand: 1mbit, functions: [{}]}}\n",
        many.join(": {}, "),
        many.join(", ")
    );
    expect(&text, &[("5:40", "10 functions are too many segments", "write 9 at most")]);
}

#[test]
fn attached_nodes_that_make_no_sense_are_refused() {
    let attached = |options: &str| {
        nodes(&format!("  gw: {{{options}}}\n  r1: {{router: linux}}\nlinks: [gw-r1]"))
    };
    for (options, place, message, help) in [
        ("attach: lo", "3:16", "`lo` cannot be attached", "such as eth1"),
        ("attach: a-name-too-long-for-linux", "3:16", "cannot be attached", "such as eth1"),
        ("attach: eth/1", "3:16", "`eth/1` cannot be attached", "such as eth1"),
        ("via: nfqueue", "3:8", "`via` is for attached interfaces", "add `attach: eth1`"),
        ("attach: eth1, via: nfqueue", "3:22", "nobody knows what is behind", "prefixes: ["),
        ("attach: eth1, bypass: true", "3:22", "`bypass` is for packets", "via: nfqueue"),
        ("attach: eth1, router: linux", "3:22", "is attached, and a router", "remove it"),
        ("attach: eth1, srv6: true", "3:22", "`srv6` needs a kernel", "router: linux"),
    ] {
        expect(&attached(options), &[(place, message, help)]);
    }
    let queued = "attach: eth1, via: nfqueue, prefixes: [10.0.1.0/28]";
    expect(
        &nodes(&format!(
            "  gw: {{{queued}}}\n  r1: {{router: linux}}\nlinks: [{{gw-r1: {{ipv4: 10.0.1.0/24}}}}]"
        )),
        &[("5:24", "`10.0.1.0/24` overlaps 10.0.1.0/28 behind gw", "do not overlap")],
    );
    expect(
        &nodes(
            "  a: {attach: eth1}\n  b: {attach: eth1}\n  r1: {router: linux}\nlinks: [a-r1, b-r1]",
        ),
        &[("4:15", "`eth1` is attached as `a` already", "attach it once")],
    );
    expect(&nodes("  a: {attach: eth1}"), &[("3:7", "`a` has 0 links", "give it one")]);
}

#[test]
fn virtual_routers_have_no_kernel() {
    for (options, place, message) in [
        ("srv6: {locator: fd00:0:9::/48}", "3:25", "`srv6` needs a kernel"),
        ("routing: [ospf]", "3:25", "`routing` needs a kernel"),
        ("config: x", "3:25", "`config` needs a kernel"),
        ("dataplane: xdp", "3:25", "`dataplane` needs a kernel"),
        ("functions: {fw: {mark: 1}}", "3:25", "`functions` needs a kernel"),
    ] {
        let file = nodes(&format!("  x1: {{router: virtual, {options}}}"));
        expect(&file, &[(place, message, "use `router: linux`")]);
    }
    expect(
        &nodes("  x1: {router: virtual}\ncontroller: true"),
        &[("3:3", "no daemon can run on `x1`", "remove `controller: true`")],
    );
}
