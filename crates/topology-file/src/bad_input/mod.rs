//! Invalid files: locations, messages and fixes of errors. No text makes the parser panic.

mod addresses;
mod any_text;
mod happenings;
mod links;
mod nodes;
mod programs;
mod sizes;
mod switches;

use super::parse;

/// A file with hosts h1, h2, h3, FRR routers r1, r2, and `rest` from line 3 on.
fn lab(rest: &str) -> String {
    format!(
        "name: a\nnodes: {{h1: {{}}, h2: {{}}, h3: {{}}, r1: {{router: frr}}, r2: {{router: frr}}}}\n{rest}\n"
    )
}

/// A file with `rest` as its nodes, from line 3 on.
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

/// Asserts the errors of `text`: location, part of the message, part of the fix.
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
    expect("name: a\nnodes: {}\n", &[("2:1", "no nodes", "`h1: {}`")]);
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
    // A pruned part is not reported again as missing.
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
    expect(&link("rate: 5MBps"), &[("3:24", "`MBps` is not a unit of bandwidth", "use bit")]);
    expect(&link("rate: 1gbit, queue: 250"), &[("3:38", "`250` has no unit", "250p (packets)")]);
    expect(&link("delay: 20"), &[("3:25", "`20` has no unit", "write 20ms")]);
    expect(
        &link("delay: -20ms"),
        &[("3:25", "`-20ms` is not a duration", "write one such as 10ms")],
    );
    expect(&link("loss: 1"), &[("3:24", "`1` has no unit", "write 1%")]);
    expect(&link("loss: 101%"), &[("3:24", "`101%` is not a percentage", "from 0% to 100%")]);
    expect(&link("loss: {gilbert-elliott: {p: 1%}}"), &[("3:25", "`r` is missing", "add `r:`")]);
    expect(&link("ipv4: 10.0.0.1/8"), &[("3:24", "has host bits set", "10.0.0.0/8")]);
    expect(&link("ipv6: 10.0.0.0/8"), &[("3:24", "not an IPv6 prefix", "fd02:9::/64")]);
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
    for name in ["controller", "emulator", "supervisor"] {
        let message = format!("as in `kaido lab start {name}`");
        expect(&nodes(&format!("  {name}: {{}}")), &[("3:3", &message, "another name")]);
    }
    let links = |text: &str| lab(&format!("links: [{text}]"));
    expect(&links("r1-r2, r2-r11"), &[("3:16", "no node is called `r11`", "did you mean `r1`?")]);
    expect(&links("r1-tokyo"), &[("3:9", "no node is called `tokyo`", "add `tokyo: {}` under")]);
    expect(&links("r1-r1"), &[("3:9", "`r1` is linked to itself", "two different nodes")]);
    expect(&links("r1"), &[("3:9", "`r1` is not a link", "write `r1-r2` for a link")]);
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
    expect(
        &links("{r1-r2: {reverse: {mtu: 1500}}}"),
        &[("3:28", "`mtu` is an option of the link", "move it out of `reverse:`")],
    );
}
