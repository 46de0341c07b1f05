//! Policies: named ones, lists and their segments.

use super::{HEAD, expect, file, sid, tenant};
use crate::parse;

fn segments(count: usize) -> String {
    let list: Vec<String> = (2..count + 2).map(|n| format!("fd00:0:{n}::1")).collect();
    format!("[{}]", list.join(", "))
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
    let whole = |count| policy(&format!("{{segments: {}, form: H.Encaps}}", segments(count)));
    expect(
        &whole(11),
        &[("3:16", "11 segments, and there is room for 10", "`form: H.Encaps.Red`")],
    );
    assert!(parse("x", &whole(10)).is_ok());
    expect(
        &policy("{segments: [fd00::1], form: long}"),
        &[("3:43", "`long` is not", "H.Encaps, H.Encaps.Red")],
    );
    expect(
        "source: fd00::1\nports: {eth0: {}}\npolicies: {My: [fd00::1]}\n",
        &[("3:12", "`My` cannot name a policy", "a-z")],
    );
}

#[test]
fn lists_in_front_of_frames() {
    for (form, longest) in [("H.Encaps.Red", 10), ("H.Encaps", 9)] {
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
