//! SIDs: locators, overlaps, behaviors with their arguments and flavors, health checks.

use super::{expect, file, sid, tenant};
use crate::parse;

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

/// The sender of an inner frame chooses its tags.
#[test]
fn end_dx2_to_a_port_with_tags_of_tenants() {
    let text = |sid: &str, attachment: &str| {
        let sids = format!("sids:\n  fd00:0:1:abc::: {{{sid}}}\n");
        let tenant = format!("tenants: {{blue: {{attachments: [{attachment}]}}}}\n");
        format!("locators: [fd00:0:1::/48]\nports: {{eth0: {{}}, eth1: {{}}}}\n{tenant}{sids}")
    };
    let tagged = "{port: eth1, vlan: 10}";
    let message = "frames with any tag to `eth1`, also into VLAN 10 of `blue`";
    let help = "{behavior: End.DX2V, vlans: {10: eth1}}";
    expect(&text("behavior: End.DX2, port: eth1", tagged), &[("5:45", message, help)]);
    for (sid, attachment) in [
        ("behavior: End.DX2, port: eth0", tagged),
        ("behavior: End.DX2, port: eth1", "{port: eth1}"),
        ("behavior: End.DX2V, vlans: {10: eth1}", tagged),
    ] {
        parse("x", &text(sid, attachment)).unwrap();
    }
}

/// The same for VLANs of the SR domain.
#[test]
fn frames_of_tenants_into_vlans_of_the_domain() {
    let text = |sid: &str| {
        let sids = format!("sids:\n  fd00:0:1:abc::: {{{sid}}}\n");
        format!("locators: [fd00:0:1::/48]\nports: {{eth0: {{}}, eth1: {{vlans: [10]}}}}\n{sids}")
    };
    let message = "frames with any tag to `eth1`, also into VLANs of the SR domain";
    expect(&text("behavior: End.DX2, port: eth1"), &[("4:45", message, "vlans: {10: eth1}")]);
    let table = "behavior: End.DX2V, vlans: {9: eth1, 10: eth1}";
    expect(&text(table), &[("4:57", "VLAN 10 of `eth1` is in the SR domain", "another VLAN")]);
    parse("x", &text("behavior: End.DX2V, vlans: {10: eth0, 9: eth1}")).unwrap();
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
    expect(&sid("behavior: End.DT4, table: 0"), &[("6:46", "no table 0", "")]);
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
            ("8:37", "the tenant already selects the table", "remove it, or the table"),
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
        expect(&text("ff02::1"), &[(&place, "`ff02::1` is not a neighbor", "")]);
        expect(&text("fe80::1"), &[(&place, "an address on every port", "a global address")]);
        expect(&text("here"), &[(&place, "`here` is not an address", "")]);
    }
    expect(&sid("behavior: End.X, next_hop: '::'"), &[("6:47", "`::` is not a neighbor", "")]);
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
    let replace = |prefix: &str, lengths: &str| {
        let map = format!("{{behavior: End, flavors: [REPLACE-C-SID]{lengths}}}");
        file(&format!("sids:\n  {prefix}: {map}"))
    };
    expect(
        &replace("fd00:1:1::/48", ", node: 24"),
        &[("6:66", "a C-SID of REPLACE-C-SID cannot have 24 bits", "write 16 or 32")],
    );
    expect(
        &replace("fd00:1:1::/48", ", block: 32"),
        &[("6:3", "`fd00:1:1::/48` is /48, and block and node make /64", "write fd00:1:1::/64")],
    );
    expect(
        &sid("behavior: End, flavors: [NEXT-C-SID, REPLACE-C-SID]"),
        &[("6:35", "NEXT-C-SID and REPLACE-C-SID read the argument differently", "one of the two")],
    );
    expect(
        &file("sids:\n  fd00:0:1:5::1: {behavior: End, flavors: [REPLACE-C-SID]}"),
        &[("6:3", "a block of 96 bits leaves none for the argument", "such as 48")],
    );
}

#[test]
fn checks_of_functions() {
    let end = sid("behavior: End, health: {run: /bin/true}");
    expect(&end, &[("6:35", "End takes no `health`", "remove it")]);
    let health = |text: &str| {
        file(&format!("sids:\n  fd00:0:1:f::/112: {{behavior: End.AN.NF, health: {{{text}}}}}"))
    };
    expect(&health("every: 1s"), &[("6:43", "`run` is missing", "add `run:`")]);
    expect(&health("run: \"\""), &[("6:57", "no command", "nft list table")]);
    expect(&health("run: []"), &[("6:52", "no command", "nft list table")]);
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
