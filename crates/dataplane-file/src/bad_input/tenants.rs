//! Ports and tenants: exits, the edge of the SR domain, VLANs.

use super::{expect, file, tenant};

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
fn tenants() {
    expect(&tenant("table: 0"), &[("5:25", "no table 0", "such as 100")]);
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

/// The sender of frames with a tag chooses the one that follows.
#[test]
fn vlans_within_those_of_another_tenant() {
    let tenant = |name: &str, attachments: &str| {
        format!("  {name}: {{table: 9, attachments: [{attachments}]}}\n")
    };
    let text = |first: &str, second: &str| {
        format!(
            "ports: {{eth0: {{}}, eth1: {{}}}}\ntenants:\n{}{}",
            tenant("a", first),
            tenant("b", second)
        )
    };
    let (one, two) = ("{port: eth0, vlan: 7}", "{port: eth0, vlan: 7, inner: 8}");
    let help = "another outer tag";
    expect(
        &text(one, two),
        &[("4:31", "VLAN 7 of `eth0` belongs to `a`, and hosts choose the second tag", help)],
    );
    expect(
        &text(two, one),
        &[("4:31", "`a` owns a VLAN within VLAN 7 of `eth0`, and hosts choose", help)],
    );
    for (first, second) in [
        (two, "{port: eth0, vlan: 7, inner: 9}"),
        (two, "{port: eth1, vlan: 7}"),
        ("{port: eth0}", two),
        ("{port: eth0, vlan: 7}, {port: eth0, vlan: 7, inner: 8}", "{port: eth0, vlan: 8}"),
    ] {
        assert!(crate::parse("x", &text(first, second)).is_ok(), "{first} {second}");
    }
}

#[test]
fn vlans_of_the_domain() {
    let ports = |vlans: &str| format!("ports: {{eth0: {{vlans: {vlans}}}}}\n");
    expect(&ports("100"), &[("1:23", "expected a list", "")]);
    expect(&ports("[red]"), &[("1:24", "expected a VLAN ID such as 100", "")]);
    for vlan in ["0", "4095", "70000000000"] {
        let found = format!("{} is not a VLAN ID", vlan.replace("70000000000", "4294967295"));
        expect(&ports(&format!("[{vlan}]")), &[("1:24", &found, "write 1 to 4094")]);
    }
    expect(&ports("[{inner: 7}]"), &[("1:24", "tags without `vlan`", "such as 100")]);
    expect(&ports("[{vlan: 7, inner: 0}]"), &[("1:41", "0 is not a VLAN ID", "")]);
    expect(&ports("[{vlan: 7, outer: 8}]"), &[("1:34", "`outer`", "")]);
    expect(&ports("[100, 200, {vlan: 100}]"), &[("1:34", "VLAN 100 is given twice", "remove one")]);
    expect(
        &ports("[{vlan: 7, inner: 8}, {vlan: 7, inner: 8}]"),
        &[("1:45", "VLAN 7/8 is given twice", "remove one")],
    );
    let many = format!("[{}]", vec!["100"; 4095].join(", "));
    expect(&ports(&many), &[("1:16", "4095 VLANs, more than 4094", "use another port")]);
    let taken = "VLAN 7 of `eth0` is in the SR domain";
    expect(
        "ports: {eth0: {vlans: [7]}}\ntenants: {a: {table: 9, attachments: [{port: eth0, vlan: 7}]}}\n",
        &[("2:39", taken, "use another VLAN")],
    );
    // A tenant chooses the tags that follow its own.
    for (vlan, attachment) in [
        ("{vlan: 7, inner: 8}", "vlan: 7"),
        ("7", "vlan: 7, inner: 8"),
        ("{vlan: 7, inner: 8}", "vlan: 7, inner: 8"),
    ] {
        let tenant = format!("{{table: 9, attachments: [{{port: eth0, {attachment}}}]}}");
        expect(
            &format!("ports: {{eth0: {{vlans: [{vlan}]}}}}\ntenants: {{a: {tenant}}}\n"),
            &[("2:39", "VLAN 7", "use another VLAN")],
        );
    }
    let apart = "{table: 9, attachments: [{port: eth0, vlan: 7, inner: 9}]}";
    let file =
        format!("ports: {{eth0: {{vlans: [{{vlan: 7, inner: 8}}]}}}}\ntenants: {{a: {apart}}}\n");
    assert!(crate::parse("x", &file).is_ok());
    let chosen = "untagged frames of `eth0` belong to `a`";
    expect(
        "ports: {eth0: {tenant: a, vlans: [7]}}\ntenants: {a: {table: 9}}\n",
        &[("1:27", chosen, "give the tenant a VLAN")],
    );
    expect(
        "ports: {eth0: {vlans: [7]}}\ntenants: {a: {table: 9, attachments: [{port: eth0}]}}\n",
        &[("1:16", chosen, "give the tenant a VLAN")],
    );
}
