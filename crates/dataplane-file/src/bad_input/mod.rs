//! Invalid files: position, message and help of each error.

mod any_text;
mod insert;
mod mobile;
mod policies;
mod proxies;
mod sids;
mod tenants;

use document::Problem;

use super::parse;

const HEAD: &str = "source: fd00:0:1::1\nlocators: [fd00:0:1::/48, fd00:1:1::/48]\n\
     ports: {eth0: {}, eth1: {}, eth2: {}}\npolicies: {to-osaka: [fd00:0:2::1]}\n";

/// Returns a file with three ports, a policy, two locators, and `rest` from line 5 on.
pub(crate) fn file(rest: &str) -> String {
    format!("{HEAD}{rest}\n")
}

/// Returns a file with a SID; its map starts at column 18 of line 6.
pub(crate) fn sid(map: &str) -> String {
    file(&format!("sids:\n  fd00:0:1:abc::: {{{map}}}"))
}

/// Returns a file with a tenant on line 5.
fn tenant(map: &str) -> String {
    file(&format!("tenants: {{blue: {{{map}}}}}"))
}

/// Checks the problems of `text`: position, part of the message, part of the help.
#[track_caller]
pub(crate) fn expect(text: &str, expected: &[(&str, &str, &str)]) {
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

#[test]
fn form() {
    expect("", &[("1:1", "the file is empty", "at least `ports:`")]);
    expect("- a\n", &[("1:1", "expected a map of `key: value`, found a list", "")]);
    expect("import: true\n", &[("1:1", "`ports` is missing", "add `ports:`")]);
    expect("ports: {}\n", &[("1:1", "no ports", "`eth0: {}`")]);
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
        &[("2:12", "has host bits set", "write fd00::/48")],
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
            ("7:7", "has host bits set", "write 10.0.0.0/8"),
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

/// Values of any length are cut.
#[test]
fn long_values_are_not_shown() {
    let long = "x".repeat(1_000_000);
    for text in [
        format!("ports: {{? {long} : {{}}}}"),
        file(&format!("policies: {{? {long} : [fd00:0:2::1]}}")),
        file(&format!("? {long} : 1")),
        sid(&format!("behavior: End.DX2, port: {long}")),
    ] {
        let problems = parse("dataplane.yaml", &text).unwrap_err();
        let all = problems.problems.iter();
        let longest =
            all.map(|one| one.message.len().max(one.help.as_ref().map_or(0, String::len)));
        assert!(longest.max().unwrap() < 1000, "a long message");
    }
}
