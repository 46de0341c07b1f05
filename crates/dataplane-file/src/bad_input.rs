//! Invalid files: position, message and help of each error. No text makes the parser panic.

use proptest::prelude::*;

use super::good_input::EVERYTHING;
use super::*;

const HEAD: &str = "source: fd00:0:1::1\nlocators: [fd00:0:1::/48, fd00:1:1::/48]\n\
     ports: {eth0: {}, eth1: {}, eth2: {}}\npolicies: {to-osaka: [fd00:0:2::1]}\n";

/// Returns a file with three ports, a policy, two locators, and `rest` from line 5 on.
pub(super) fn file(rest: &str) -> String {
    format!("{HEAD}{rest}\n")
}

/// Returns a file with a SID; its map starts at column 18 of line 6.
pub(super) fn sid(map: &str) -> String {
    file(&format!("sids:\n  fd00:0:1:abc::: {{{map}}}"))
}

/// Returns a file with a tenant on line 5.
fn tenant(map: &str) -> String {
    file(&format!("tenants: {{blue: {{{map}}}}}"))
}

/// Checks the problems of `text`: position, part of the message, part of the help.
#[track_caller]
pub(super) fn expect(text: &str, expected: &[(&str, &str, &str)]) {
    let problems = match parse("dataplane.yaml", text) {
        Ok(_) => panic!("no problem found in\n{text}"),
        Err(problems) => problems,
    };
    let render = problems.render(false);
    let fits = |problem: &Problem, (place, message, help): &(&str, &str, &str)| {
        let Problem { line, column, .. } = problem;
        format!("{line}:{column}") == **place
            && problem.message.contains(message)
            && problem.help.as_deref().unwrap_or("").contains(help)
            && render.contains(&format!("dataplane.yaml:{line}:{column}"))
    };
    let all = problems.problems.len() == expected.len()
        && problems
            .problems
            .iter()
            .zip(expected)
            .all(|(problem, expected)| fits(problem, expected));
    assert!(all, "{render}\nexpected {expected:#?}");
}

fn segments(count: usize) -> String {
    let list: Vec<String> = (2..count + 2).map(|n| format!("fd00:0:{n}::1")).collect();
    format!("[{}]", list.join(", "))
}

#[test]
fn exits() {
    let ports = |text: &str| format!("ports: {{eth0: {{exit: {text}}}, eth1: {{}}}}\n");
    expect(&ports("a/b"), &[("1:22", "`a/b` cannot name an interface", "up to 15 bytes")]);
    expect(&ports("eth1"), &[("1:22", "`eth1` is a port, and an exit", "the port's queue")]);
}

#[test]
fn the_edge_of_the_domain() {
    expect("ports: {eth0: {sids: none}}\n", &[("1:22", "expected true or false", "")]);
    let sources = |list: &str| file(&format!("sources: {list}"));
    expect(&sources("[fd00::1]"), &[("5:11", "`fd00::1`", "")]);
    expect(&sources("[10.0.0.0/8]"), &[("5:11", "`10.0.0.0/8` is not an IPv6 prefix", "")]);
    expect(&sources("['::/0']"), &[("5:11", "every source is in `::/0`", "remove `sources`")]);
    expect(
        &sources("[fd00:0:2::/48]"),
        &[("5:1", "`source` fd00:0:1::1 is in none of `sources`", "add its prefix")],
    );
    expect(&tenant("sources: [10.0.0.1]"), &[("5:28", "`10.0.0.1`", "")]);
    expect(&tenant("falls_through: perhaps"), &[("5:33", "expected true or false", "")]);
    expect(
        &tenant("frames: to-osaka, sources: [10.0.0.0/8]"),
        &[("5:36", "`blue` has both `frames` and `sources`", "remove `sources`")],
    );
}

#[test]
fn form() {
    expect("", &[("1:1", "the file is empty", "at least `ports:`")]);
    expect("- a\n", &[("1:1", "expected a map of `key: value`, found a list", "")]);
    expect("import: true\n", &[("1:1", "`ports` is missing", "add `ports:`")]);
    expect("ports: {}\n", &[("1:1", "there are no ports", "`eth0: {}`")]);
    expect("ports:\n  eth0:\n", &[("2:7", "found nothing", "write `{}`")]);
    expect("ports: {a b: {}}\n", &[("1:9", "`a b` cannot name an interface", "`ip link`")]);
    expect(&file("polcies: {}"), &[("5:1", "unknown key `polcies`", "did you mean `policies`?")]);
    expect(&file("mode: fast"), &[("5:7", "`fast` is not known here", "auto, native, generic")]);
    expect(&file("import: perhaps"), &[("5:9", "expected true or false", "")]);
    expect(&file("dataplane: dpdk"), &[("5:12", "dpdk", "")]);
    expect(
        "ports: {eth0: {}}\nsource: 10.0.0.1\n",
        &[("2:9", "`10.0.0.1` is not an IPv6 address", "write one such as")],
    );
    expect(
        "ports: {eth0: {}}\nsource: ::1\n",
        &[("2:9", "not an address that other", "fd00:0:1::1")],
    );
    expect(
        "ports: {eth0: {}}\nlocators: [fd00::1/48]\n",
        &[("2:12", "bits set behind its length", "write fd00::/48")],
    );
}

#[test]
fn everything_wrong_is_found_in_one_run() {
    expect(
        "imprt: true\nmode: fast\nports: {eth0: {tenat: x}, eth1: {}}\ntenants:\n  blue:\n    \
         routes:\n      10.0.0.1/8: a\n      10.0.0.0/33: b\n      10.1.0.0/16: {segmnts: []}\n    \
         attachments:\n      - {port: eth0, vlan: x}\n      - {prt: eth0}\n      - {port: eth0, vlan: y}\n\
         sids:\n  fd00:0:1:: End\n  'fd00::/x': End\n  'fd00:0:1:1::': End.Z\n  'fd00:0:1:2::': {behavior: Ed}\n",
        &[
            ("1:1", "unknown key `imprt`", "did you mean `import`?"),
            ("2:7", "`fast` is not known", ""),
            ("3:16", "unknown key `tenat`", "did you mean `tenant`?"),
            ("7:7", "bits set behind its length", "write 10.0.0.0/8"),
            ("8:7", "`10.0.0.0/33` is not a prefix", ""),
            ("9:21", "unknown key `segmnts`", "did you mean `segments`?"),
            ("11:28", "expected a whole number", ""),
            ("12:10", "unknown key `prt`", "did you mean `port`?"),
            ("13:28", "expected a whole number", ""),
            ("15:3", "`fd00:0:1:` is not a SID", "write \"fd00:0:1::\" in quotes"),
            ("16:3", "`fd00::/x` is not a prefix", ""),
            ("17:19", "`End.Z` is not known here", "did you mean"),
            ("18:30", "`Ed` is not known here", "did you mean `End`?"),
        ],
    );
}

#[test]
fn colons_that_yaml_takes() {
    expect(
        &file("tenants: {blue: {routes: {10.0.0.0/8: [fd00:0:2::, fd00:0:3::1]}}}"),
        &[("5:40", "`fd00:0:2::` reads as a key here", "write \"fd00:0:2::\" in quotes")],
    );
}

#[test]
fn lists_that_begin_at_home() {
    let own = "is this node's own: it is in the locator fd00:0:1::/48";
    let help = "a SID of another node";
    let head = HEAD.split_once("policies").unwrap().0;
    for (policies, place) in [
        ("policies: {loop: [fd00:0:1::1, fd00:0:2::1]}", "4:19"),
        ("policies: {loop: {segments: [fd00:0:1:ffff::1]}}", "4:30"),
        (
            "policies: {loop: {lists: [{segments: [fd00:0:2::1]}, {segments: [fd00:0:1::1]}]}}",
            "4:66",
        ),
    ] {
        let message = "the policy `loop` begins with `fd00:0:1:";
        let text = format!("{head}{policies}\n");
        expect(&text, &[(place, message, help)]);
        expect(&text, &[(place, own, help)]);
    }
    let begins = "the list begins with `fd00:0:1::1`";
    expect(&tenant("routes: {10.0.0.0/8: [fd00:0:1::1]}"), &[("5:40", begins, help)]);
    expect(&tenant("frames: [fd00:0:1::1]"), &[("5:27", begins, help)]);
    expect(&sid("behavior: End.B6.Encaps, policy: [fd00:0:1::1]"), &[("6:54", begins, help)]);
    // The list may contain a local SID after that of another node.
    let back = file("tenants: {blue: {routes: {10.0.0.0/8: [fd00:0:2::1, fd00:0:1::1]}}}");
    assert!(parse("dataplane.yaml", &back).is_ok());
}

#[test]
fn sources_and_locators() {
    let missing = ("`source` is missing", "add `source:`");
    for (text, place) in [
        ("policies: {p: [fd00::1]}", "2:1"),
        ("tenants: {a: {routes: {10.0.0.0/8: [fd00::1]}}}", "2:11"),
        ("tenants: {a: {frames: [fd00::1]}}", "2:11"),
    ] {
        let text = format!("ports: {{eth0: {{}}}}\n{text}\n");
        expect(&text, &[(place, missing.0, missing.1)]);
    }
    expect(
        "ports: {eth0: {}}\nlocators: [fd00::/48]\n\
         sids: {\"fd00::1\": {behavior: End.B6.Encaps, policy: [fd00:1::1]}}\n",
        &[("3:8", missing.0, missing.1)],
    );
    expect(
        "ports: {eth0: {}}\nlocators: [fd00:0:1:8::/64, fd00:0:1::/48, fd00:0:1:9::/64]\n",
        &[
            ("2:29", "`fd00:0:1::/48` overlaps the locator fd00:0:1:8::/64", "remove one"),
            ("2:44", "`fd00:0:1:9::/64` overlaps the locator fd00:0:1::/48", "remove one"),
        ],
    );
    expect(
        "ports: {eth0: {}}\nsids: {\"fd00::1\": End}\n",
        &[("2:1", "there are SIDs, and no locator", "add `locators:`")],
    );
    expect(
        &file("sids:\n  fd00:0:9:1::: End\n  fd01:0::/32: End"),
        &[
            ("6:3", "`fd00:0:9:1::` is in no locator", "`locators:`"),
            ("7:3", "`fd01::/32` is in no locator", "`locators:`"),
        ],
    );
}

#[test]
fn sids_that_overlap() {
    expect(
        &file("sids:\n  fd00:0:1:1::: End\n  fd00:0:1:01::: End"),
        &[("7:3", "the SID `fd00:0:1:1::` is given twice", "remove one")],
    );
    expect(
        &file("sids:\n  fd00:0:1:1::: End\n  fd00:0:1:1::: End"),
        &[("7:3", "`fd00:0:1:1::` is given twice", "remove one")],
    );
    expect(
        &file("sids:\n  fd00:0:1:1::5: End\n  fd00:0:1:1::/64: End\n  fd00:0:1:1::6: End"),
        &[
            ("7:3", "the SID `fd00:0:1:1::/64` overlaps fd00:0:1:1::5", "only NEXT-C-SID"),
            ("8:3", "the SID `fd00:0:1:1::6` overlaps fd00:0:1:1::/64", "only NEXT-C-SID"),
        ],
    );
    let csid = "{behavior: End, flavors: [NEXT-C-SID]}";
    expect(
        &file(&format!("sids:\n  fd00:1:1::/48: {csid}\n  fd00:1:0001::/48: {csid}")),
        &[("7:3", "the SID `fd00:1:1::/48` is given twice", "")],
    );
    // The prefix of a container may contain other SIDs.
    let inside =
        "sids:\n  fd00:1:1::/48: {behavior: End, flavors: [NEXT-C-SID]}\n  fd00:1:1:d4::: End";
    assert!(parse("x", &file(inside)).is_ok());
}

#[test]
fn segment_lists() {
    let policy =
        |text: &str| format!("source: fd00::1\nports: {{eth0: {{}}}}\npolicies: {{p: {text}}}\n");
    expect(&policy("{}"), &[("3:12", "a policy without segments", "add `segments:`")]);
    expect(&policy("[]"), &[("3:12", "a list without segments", "at least one")]);
    expect(&policy("{segments: []}"), &[("3:16", "a list without segments", "at least one")]);
    expect(&policy("{lists: []}"), &[("3:12", "a policy without segments", "add `segments:`")]);
    expect(&policy("other"), &[("3:15", "expected a list of segments", "")]);
    expect(
        &policy("{segments: [fd00::1], lists: [{segments: [fd00::1]}]}"),
        &[("3:37", "both `segments` and `lists`", "among `lists:`")],
    );
    expect(
        &policy("{lists: [{segments: [fd00::1], weight: 0}, {segments: [], weight: 1}]}"),
        &[("3:54", "weight 0", "1 or more"), ("3:59", "a list without segments", "")],
    );
    let many = vec!["{segments: [fd00::1]}"; 65].join(", ");
    expect(
        &policy(&format!("{{lists: [{many}]}}")),
        &[("3:16", "65 lists are more than the 64", "merge")],
    );
    expect(&policy("[fd00::1, 'ff02::1']"), &[("3:25", "`ff02::1` is not a segment", "a SID of")]);
    expect(
        &policy(&segments(12)),
        &[("3:12", "12 segments, and there is room for 11 in front of a packet", "remove some")],
    );
    assert!(parse("x", &policy(&segments(11))).is_ok());
    let whole = |count| policy(&format!("{{segments: {}, form: whole}}", segments(count)));
    expect(&whole(11), &[("3:16", "11 segments, and there is room for 10", "`form: reduced`")]);
    assert!(parse("x", &whole(10)).is_ok());
    expect(&policy("{segments: [fd00::1], form: long}"), &[("3:43", "`long` is not", "whole, re")]);
    expect(
        "source: fd00::1\nports: {eth0: {}}\npolicies: {My: [fd00::1]}\n",
        &[("3:12", "`My` cannot name a policy", "a-z")],
    );
}

#[test]
fn lists_in_front_of_frames() {
    for (form, longest) in [("reduced", 10), ("whole", 9)] {
        let text =
            |count| tenant(&format!("frames: {{segments: {}, form: {form}}}", segments(count)));
        let message = format!("there is room for {longest} in front of a frame");
        expect(&text(longest + 1), &[("5:27", &message, "")]);
        assert!(parse("x", &text(longest)).is_ok());
    }
    let text = format!(
        "source: fd00::1\nports: {{eth0: {{}}}}\npolicies: {{p: {}}}\ntenants: {{a: {{frames: p}}}}\n",
        segments(11)
    );
    expect(&text, &[("4:23", "`p` has 11 segments, and there is room for 10", "another policy")]);
}

#[test]
fn names_that_nothing_has() {
    expect(
        &tenant("routes: {10.0.0.0/8: to-osake, 10.1.0.0/16: x}"),
        &[
            ("5:39", "no policy is called `to-osake`", "did you mean `to-osaka`?"),
            ("5:62", "no policy is called `x`", "add `x: {segments: […]}` under `policies:`"),
        ],
    );
    expect(
        &tenant("attachments: [{port: eth9, vlan: 10}]"),
        &[("5:39", "no port is called `eth9`", "did you mean `eth0`?")],
    );
    expect(
        "ports: {eth0: {tenant: bleu}, eth1: {tenant: x}}\ntenants: {blue: {}}\n",
        &[
            ("1:24", "no tenant is called `bleu`", "did you mean `blue`?"),
            ("1:46", "no tenant is called `x`", "add `x:` under `tenants:`"),
        ],
    );
    expect(&tenant("frames: to-osak"), &[("5:26", "no policy is called `to-osak`", "`to-osaka`?")]);
    expect(
        &sid("behavior: End.DT4, tenant: red"),
        &[("6:47", "no tenant is called `red`", "add `red:` under")],
    );
    expect(
        &sid("behavior: End.DX2, port: veth-tokyo"),
        &[("6:45", "no port is called `veth-tokyo`", "add `veth-tokyo: {}` under `ports:`")],
    );
    expect(
        &sid("behavior: End.B6.Encaps, policy: osaka"),
        &[("6:53", "no policy is called `osaka`", "add `osaka:")],
    );
}

#[test]
fn tenants() {
    expect(&tenant("table: 0"), &[("5:25", "there is no table 0", "such as 100")]);
    expect(&tenant("table: 7, vrf: red"), &[("5:28", "`table` and `vrf` both", "remove one")]);
    expect(
        &tenant("routes: {2001:db8::/32: to-osaka, '2001:0db8::/32': to-osaka}"),
        &[("5:52", "`2001:db8::/32` is given twice", "remove one of the two")],
    );
    expect(
        &tenant("routes: {10.0.0.0/8: to-osaka}, frames: to-osaka"),
        &[("5:50", "`blue` has both `frames` and `routes`", "make two tenants")],
    );
    expect(
        &file("tenants: {Blue: {}}"),
        &[("5:11", "`Blue` cannot name a tenant", "beginning with a letter")],
    );
}

#[test]
fn vlans() {
    for vlan in ["0", "4095", "70000"] {
        let text = tenant(&format!("attachments: [{{port: eth0, vlan: {vlan}}}]"));
        expect(&text, &[("5:51", &format!("{vlan} is not a VLAN ID"), "write 1 to 4094")]);
    }
    expect(
        &tenant("attachments: [{port: eth0, vlan: 1, inner: 4095}]"),
        &[("5:61", "4095 is not a VLAN ID", "write 1 to 4094")],
    );
    expect(
        &tenant("attachments: [{port: eth0, inner: 7}]"),
        &[("5:45", "an inner tag without an outer one", "add `vlan:`")],
    );
    expect(
        &file(
            "tenants:\n  a: {attachments: [{port: eth0, vlan: 7}, {port: eth0, vlan: 7, inner: 8}, {port: eth0}]}\n  \
             b: {attachments: [{port: eth0, vlan: 7}, {port: eth0, vlan: 7, inner: 8}, {port: eth0}]}\n  \
             c: {frames: to-osaka, attachments: [{port: eth0, vlan: 7}]}",
        ),
        &[
            ("7:21", "VLAN 7 of `eth0` is `a`'s already", "another VLAN"),
            ("7:44", "VLAN 7, 8 of `eth0` is `a`'s already", "another VLAN"),
            ("7:77", "what comes to `eth0` without a tag is `a`'s already", "another VLAN"),
            ("8:39", "VLAN 7 of `eth0` is `a`'s already", "frames and routes need VLANs"),
        ],
    );
    expect(
        "source: fd00::1\nports: {eth0: {tenant: b}}\n\
         tenants: {a: {frames: [fd00::2], attachments: [{port: eth0}]}, b: {routes: {10.0.0.0/8: [fd00::2]}}}\n",
        &[("3:48", "what comes to `eth0` without a tag is `b`'s", "frames and routes need")],
    );
}

#[test]
fn behaviors_and_arguments() {
    let lacks = [
        ("End.X", "a next hop", "fd00:b::2"),
        ("End.T", "a table", "add one of `tenant:`, `table:` and `vrf:`"),
        ("End.DX2", "a port", "add `port:`"),
        ("End.DX4", "a next hop", "10.0.0.1"),
        ("End.DX6", "a next hop", "fd00:b::2"),
        ("End.DT4", "a table", "add one of"),
        ("End.DT6", "a table", "add one of"),
        ("End.DT46", "a table", "add one of"),
        ("End.B6.Encaps", "a policy", "add `policy:`"),
    ];
    for (behavior, what, help) in lacks {
        let message = format!("{behavior} needs {what}");
        expect(&sid(&format!("behavior: {behavior}")), &[("6:3", &message, help)]);
        let short = file(&format!("sids:\n  fd00:0:1:abc::: {behavior}"));
        expect(&short, &[("6:19", &message, help)]);
    }
    let takes_none = [
        ("End", "table: 7", "table"),
        ("End", "vlan: 7", "vlan"),
        ("End.X, next_hop: fd00::1", "policy: to-osaka", "policy"),
        ("End.T, table: 7", "vlan: 7", "vlan"),
        ("End.DX2, port: eth0", "vlan: 7", "vlan"),
        ("End.DX4, next_hop: 10.0.0.1", "table: 7", "table"),
        ("End.DX6, next_hop: fd00::1", "port: eth0", "port"),
        ("End.DT4, table: 7", "next_hop: 10.0.0.1", "next_hop"),
        ("End.B6.Encaps, policy: to-osaka", "vrf: red", "vrf"),
        ("End", "answers: to-osaka", "answers"),
        ("End.AN.NF", "policy: to-osaka", "policy"),
    ];
    for (behavior, argument, key) in takes_none {
        let text = sid(&format!("behavior: {behavior}, {argument}"));
        let column = 32 + behavior.len();
        let message = format!("takes no `{key}`");
        expect(&text, &[(&format!("6:{column}"), &message, "remove it")]);
    }
    expect(&sid("next_hop: fd00::1"), &[("6:3", "`behavior` is missing", "add `behavior:`")]);
    expect(
        &sid("behavior: End.AN.NF, answers: nowhere"),
        &[("6:50", "no policy is called `nowhere`", "")],
    );
    expect(&sid("behavior: End.DT4, table: 0"), &[("6:46", "there is no table 0", "")]);
    expect(
        &sid("behavior: End.DT4, table: 7, vrf: red"),
        &[("6:49", "`table` and `vrf` both", "remove one")],
    );
    expect(
        &file(
            "tenants: {a: {}, b: {table: 7}}\nsids:\n  fd00:0:1:1::: {behavior: End.DT4, tenant: a}\n  fd00:0:1:2::: {behavior: End.DT4, tenant: b, table: 7}",
        ),
        &[
            ("7:45", "the tenant `a` has no table", "add `table:` or `vrf:` to it"),
            ("8:37", "the tenant says in which table", "remove it, or the table"),
        ],
    );
}

#[test]
fn next_hops() {
    expect(
        &sid("behavior: End.DX4, next_hop: fd00::1"),
        &[("6:49", "End.DX4 sends IPv4", "or use End.DX6")],
    );
    for behavior in ["End.X", "End.DX6"] {
        let text = |next_hop: &str| sid(&format!("behavior: {behavior}, next_hop: {next_hop}"));
        let place = format!("6:{}", 42 + behavior.len());
        let message = format!("{behavior} sends IPv6");
        expect(&text("10.0.0.1"), &[(&place, &message, "such as fd00:b::2")]);
        expect(&text("ff02::1"), &[(&place, "`ff02::1` is not a neighbour", "")]);
        expect(&text("fe80::1"), &[(&place, "an address on every port", "a global address")]);
        expect(&text("here"), &[(&place, "`here` is not an address", "")]);
    }
    expect(&sid("behavior: End.X, next_hop: '::'"), &[("6:47", "`::` is not a neighbour", "")]);
    assert!(parse("x", &sid("behavior: End.DX6, next_hop: '::'")).is_ok());
    assert!(parse("x", &sid("behavior: End.DX4, next_hop: 0.0.0.0")).is_ok());
}

#[test]
fn keys_of_earlier_versions() {
    let text = sid("behaviour: End, flavours: [PSP]");
    let file = parse("x", &text).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(file.sids[0].1.flavors.psp);
    // Their places are those of the file.
    expect(&sid("behaviour: End, flavours: [PSP, PSP]"), &[("6:52", "PSP is listed twice", "one")]);
    expect(&sid("behaviour: End, behavior: End"), &[("6:3", "duplicate field `behavior`", "")]);
    // Only SIDs had them.
    let text = tenant("behaviour: End");
    expect(&text, &[("5:18", "unknown key `behaviour`", "allowed here")]);
}

#[test]
fn flavors() {
    for (behavior, flavor) in [
        ("End.DT4, table: 7", "PSP"),
        ("End.DX4, next_hop: 10.0.0.1", "USD"),
        ("End.DX2, port: eth0", "NEXT-C-SID"),
        ("End.B6.Encaps, policy: to-osaka", "USP"),
    ] {
        let text =
            file(&format!("sids:\n  fd00:1:1::/48: {{behavior: {behavior}, flavors: [{flavor}]}}"));
        let place = format!("6:{}", 45 - 14 + behavior.len() + 10);
        let message = format!("cannot have {flavor}");
        expect(&text, &[(&place, &message, "remove it")]);
    }
    expect(&sid("behavior: End, flavors: [PSP, PSP]"), &[("6:50", "PSP is listed twice", "one")]);
    expect(&sid("behavior: End, flavors: [PSB]"), &[("6:45", "`PSB` is not", "mean `PSP`?")]);
    expect(&sid("behavior: End, block: 32"), &[("6:35", "a length of NEXT-C-SID", "flavors:")]);
    let csid = |prefix: &str, lengths: &str| {
        file(&format!("sids:\n  {prefix}: {{{lengths}, behavior: End, flavors: [NEXT-C-SID]}}"))
    };
    for length in [0, 12, 128, 300] {
        let message = format!("`block` cannot have {length} bits");
        let text = csid("fd00:1:1::/48", &format!("block: {length}"));
        expect(&text, &[("6:26", &message, "a multiple of 8")]);
    }
    expect(
        &csid("fd00:1:1::/48", "block: 120, node: 16"),
        &[("6:26", "a block of 120 and a node of 16 bits are more than 128", "shorten")],
    );
    expect(
        &csid("fd00:1:1::/64", "block: 32, node: 16"),
        &[("6:3", "`fd00:1:1::/64` is /64, and block and node make /48", "write fd00:1:1::/48")],
    );
}

#[test]
fn limits() {
    expect(
        &file(
            "limits: {sids: 1, policies: 0, lists: 16777217, prefixes: 1, tenants: 1}\n\
               tenants: {a: {routes: {10.0.0.0/8: to-osaka, 11.0.0.0/8: to-osaka}}, b: {}}\n\
               sids: {\"fd00:0:1:1::\": End, \"fd00:0:1:2::\": End}",
        ),
        &[
            ("5:16", "the file has 2 sids, more than 1", "write at least 2"),
            ("5:29", "a table for 0 policies", "write 1 to 16777216"),
            ("5:39", "a table for 16777217 lists", "write 1 to"),
            ("5:59", "the file has 2 prefixes, more than 1", "write at least 2"),
            ("5:71", "the file has 2 tenants, more than 1", "write at least 2"),
        ],
    );
}

#[test]
fn thousands_of_problems_take_little_time() {
    let mut text = file("tenants:\n  blue:\n    routes:");
    for n in 0..20_000 {
        text += &format!("      10.{}.{}.0/24: x{n}\n", n / 256, n % 256);
    }
    let problems = parse("dataplane.yaml", &text).unwrap_err();
    assert_eq!(problems.problems.len(), 20_000);
    assert!(problems.to_string().ends_with("… and 19950 more problems"));
    let text = text.replace("/24: x", "/33: x");
    assert_eq!(parse("dataplane.yaml", &text).unwrap_err().problems.len(), 100);
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
    fn no_change_of_a_good_file_makes_it_panic(
        at in 0..EVERYTHING.len(),
        cut in 0_usize..40,
        insert in "[a-z0-9{}\\[\\],:/ \n.*&<-]{0,6}",
    ) {
        let end = (at + cut).min(EVERYTHING.len());
        let text = format!("{}{insert}{}", &EVERYTHING[..at], &EVERYTHING[end..]);
        if let Err(problems) = parse("x", &text) {
            prop_assert!(problems.to_string().contains("error: "));
        }
    }
}

#[test]
fn checks_of_functions() {
    let end = sid("behavior: End, health: {run: /bin/true}");
    expect(&end, &[("6:35", "End takes no `health`", "remove it")]);
    let health = |text: &str| {
        file(&format!("sids:\n  fd00:0:1:f::/112: {{behavior: End.AN.NF, health: {{{text}}}}}"))
    };
    expect(&health("every: 1s"), &[("6:43", "`run` is missing", "add `run:`")]);
    expect(&health("run: \"\""), &[("6:57", "there is no command", "nft list table")]);
    expect(&health("run: []"), &[("6:52", "there is no command", "nft list table")]);
    expect(&health("run: a | b"), &[("6:57", "`|` is for a shell", "[sh, -c, \"a | b\"]")]);
    expect(&health("run: ./check"), &[("6:57", "`./check` is a path from nowhere", "whole path")]);
    expect(&health("run: {}"), &[("6:52", "a command such as", "")]);
    expect(
        &health("run: a, every: 1ms, timeout: 2h"),
        &[("6:67", "1ms is not possible", "10ms to 1h"), ("6:81", "7200s", "10ms to 1h")],
    );
    expect(&health("run: a, every: 1"), &[("6:67", "`1` has no unit", "1ms, 1s or 1m")]);
    expect(
        &health("run: a, fall: 0, rise: 1001"),
        &[("6:66", "0 times in a row", "1 to 1000"), ("6:75", "1001 times", "1 to 1000")],
    );
    expect(&health("run: a, rises: 1"), &[("6:60", "unknown key `rises`", "`rise`?")]);
}
