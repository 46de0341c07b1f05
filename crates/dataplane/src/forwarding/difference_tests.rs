use netlink::{Link, Mac};

use super::super::{Links, Tenants, resolve};
use super::*;

const EXAMPLE: &str = include_str!("../../../../labs/dataplane/tenants.yaml");

fn forwarding(text: &str, tenants: &mut Tenants) -> Forwarding {
    let file = dataplane_file::parse("x", text).unwrap_or_else(|problems| panic!("{problems}"));
    let link = |(index, name): (u32, &str)| Link {
        index,
        name: name.into(),
        mac: Some(Mac([2, 0, 0, 0, 0, index as u8])),
        ..Link::default()
    };
    let links = [(1, "eth0"), (2, "eth1"), (3, "eth2"), (4, "eth3")].map(link);
    resolve(&file, &Links::new(links.into(), true), tenants).unwrap()
}

/// Returns the changes that replacements in the example cause.
fn change(replacements: &[(&str, &str)]) -> Difference {
    let mut tenants = Tenants::default();
    let old = forwarding(EXAMPLE, &mut tenants);
    let mut text = EXAMPLE.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let new = forwarding(&text, &mut tenants);
    let name = |id| tenants.name(id).unwrap_or("?").to_owned();
    let difference = Difference::between(&old, &new, &name, 50);
    let back = Difference::between(&new, &old, &name, 50);
    let number = |of: &Difference| of.changes.len() + of.more();
    assert_eq!(number(&difference), number(&back));
    difference
}

#[track_caller]
fn expect(replacements: &[(&str, &str)], lines: &str) {
    let indented: String = lines.lines().map(|line| format!("{}\n", line.trim())).collect();
    assert_eq!(change(replacements).to_string(), indented);
}

#[test]
fn nothing() {
    assert!(change(&[]).is_empty());
    expect(&[], "nothing changes");
}

#[test]
fn each_kind_has_its_line() {
    expect(
        &[("source: fd00:0:1::1", "source: fd00:0:1::2")],
        "~ source fd00:0:1::1 -> fd00:0:1::2",
    );
    expect(
        &[("  eth0: {}", "  eth0: {tenant: wire}\n  eth3: {}")],
        "~ port eth0 1 02:00:00:00:00:01 -> 1 02:00:00:00:00:01 frames to-osaka
         + port eth3 4 02:00:00:00:00:04",
    );
    expect(
        &[("- {port: eth1, vlan: 10}", "- {port: eth1, vlan: 11}")],
        "- attachment eth1 vlan 10 tenant blue
         + attachment eth1 vlan 11 tenant blue",
    );
    expect(
        &[("{segments: [fd00:0:2::1, fd00:0:3::d4], form: H.Encaps.Red}", "[fd00:0:9::1]")],
        "~ policy to-osaka <fd00:0:2::1, fd00:0:3::d4> -> <fd00:0:9::1>
         ~ policy blue to-osaka <fd00:0:2::1, fd00:0:3::d4> -> <fd00:0:9::1>
         ~ policy wire to-osaka <fd00:0:2::1, fd00:0:3::d4> -> <fd00:0:9::1>",
    );
    expect(
        &[
            ("10.2.0.0/16: [fd00:0:2::1, fd00:0:3::d4]", "10.2.0.0/16: [fd00:0:7::1]"),
            ("10.1.0.0/16: to-osaka", "10.9.0.0/16: to-osaka"),
            ("weight: 3", "weight: 5"),
        ],
        "~ policy blue both <fd00:0:2::1, fd00:0:3::d4> weight 3, <fd00:0:4::1, fd00:0:3::d4> weight 1 -> \
         <fd00:0:2::1, fd00:0:3::d4> weight 5, <fd00:0:4::1, fd00:0:3::d4> weight 1
         - route blue 10.1.0.0/16 to-osaka
         ~ route blue 10.2.0.0/16 <fd00:0:2::1, fd00:0:3::d4> -> <fd00:0:7::1>
         + route blue 10.9.0.0/16 to-osaka",
    );
    expect(
        &[
            ("  fd00:0:1:1::: End\n", ""),
            ("[PSP, USD]", "[PSP]"),
            (
                "sids:\n",
                "sids:\n  fd00:0:1:99::: {behavior: End.DX4, next_hop: 10.0.0.9, vlan: 7}\n",
            ),
            (
                "behavior: End.B6.Encaps, policy: to-osaka",
                "behavior: End.B6.Encaps, policy: [fd00:0:8::1]",
            ),
        ],
        "- policy to-osaka <fd00:0:2::1, fd00:0:3::d4>
         - sid fd00:0:1:1:: End
         + sid fd00:0:1:99:: End.DX4 10.0.0.9 vlan 7
         ~ sid fd00:0:1:b6:: End.B6.Encaps to-osaka -> End.B6.Encaps <fd00:0:8::1>
         ~ sid fd00:0:1:e000:: End.X fd00:b::2 [PSP, USD] -> End.X fd00:b::2 [PSP]",
    );
}

#[test]
fn a_changed_inline_list_is_seen_at_every_use() {
    let text = |last: &str| {
        format!(
            "source: fd00::1\nports: {{eth0: {{}}}}\nlocators: [fd00:0:1::/48]\n\
             tenants: {{a: {{frames: [{last}], attachments: [{{port: eth0, vlan: 7}}]}}}}\n\
             sids: {{\"fd00:0:1::1\": {{behavior: End.B6.Encaps, policy: [{last}]}}}}\n"
        )
    };
    let mut tenants = Tenants::default();
    let old = forwarding(&text("fd00:0:2::1"), &mut tenants);
    let new = forwarding(&text("fd00:0:3::1"), &mut tenants);
    let difference = Difference::between(&old, &new, &|_| "a".into(), 50);
    assert_eq!(
        difference.to_string(),
        "~ attachment eth0 vlan 7 frames <fd00:0:2::1> -> frames <fd00:0:3::1>\n\
         ~ sid fd00:0:1::1 End.B6.Encaps <fd00:0:2::1> -> End.B6.Encaps <fd00:0:3::1>\n"
    );
}

#[test]
fn many_changes_are_summed_up() {
    let sids: String = (0..60).map(|n| format!("  fd00:0:1:a{n:x}::: End\n")).collect();
    let difference =
        change(&[("sids:\n", &format!("sids:\n{sids}")), ("  eth0: {}", "  eth3: {}")]);
    let text = difference.to_string();
    assert_eq!(text.lines().count(), 52);
    assert!(text.ends_with("… and 12 more\nport: 1 added, 1 removed; sid: 60 added\n"), "{text}");
}

#[test]
fn changes_are_written_as_json() {
    let difference = change(&[("[PSP, USD]", "[PSP]"), ("  fd00:0:1:1::: End\n", "")]);
    let json = serde_json::to_value(&difference).unwrap();
    assert_eq!(json["changes"][0]["of"], "sid");
    assert_eq!(json["changes"][0]["old"], "End");
    assert_eq!(json["changes"][0]["new"], serde_json::Value::Null);
    assert_eq!(json["changes"][1]["name"], "fd00:0:1:e000::");
}
