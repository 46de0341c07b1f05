//! Valid files: their configurations, and their conformance to the schema.

use std::net::Ipv6Addr;

use document::{Tree, Value, load};
use model::dataplane::{Behavior, Dataplane, File, Limits, Mode, Port, Steer, Table, Tags};
use srv6::{CsidLengths, Flavors, Form};

use super::*;

pub(crate) const EVERYTHING: &str = include_str!("../../../labs/dataplane/tenants.yaml");

#[track_caller]
fn good(text: &str) -> File {
    parse("dataplane.yaml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn text(segments: &srv6::SegmentList) -> String {
    segments.to_string()
}

#[test]
fn the_least_file() {
    let file = good("ports: {eth0: {}}\n");
    assert_eq!((file.source, file.import, file.sids.len()), (None, true, 0));
    assert_eq!(file.dataplane, Dataplane::Xdp);
    assert_eq!(good("ports: {eth0: {}}\ndataplane: kernel\n").dataplane, Dataplane::Kernel);
    let port =
        Port { mode: Mode::Auto, tenant: None, exit: None, edge: false, vlans: vec![], line: 1 };
    assert_eq!(file.ports.get("eth0"), Some(&port));
    let limits = Limits {
        sids: 4096,
        prefixes: 4096,
        policies: 4096,
        lists: 4096,
        tenants: 256,
        held: 16384,
    };
    assert_eq!(file.limits, limits);
}

#[test]
fn vlans_of_the_domain() {
    let file = good("ports: {eth0: {sids: false, vlans: [100, {vlan: 7}, {vlan: 7, inner: 8}]}}\n");
    let tags = |outer, inner| Tags { outer, inner };
    assert_eq!(file.ports["eth0"].vlans, [tags(100, 0), tags(7, 0), tags(7, 8)]);
    assert!(file.ports["eth0"].edge);
}

#[test]
fn replaced_csids() {
    let sid = |sid: &str, more: &str| {
        let map = format!("{{behavior: End, flavors: [PSP, REPLACE-C-SID]{more}}}");
        good(&format!(
            "locators: [fd00:1::/32]\nports: {{eth0: {{}}}}\nsids: {{\"{sid}\": {map}}}\n"
        ))
    };
    let lengths = |file: File| file.sids[0].1.flavors.replace_csid.unwrap();
    let csid = |block_bits, node_function_bits| CsidLengths { block_bits, node_function_bits };
    assert_eq!(lengths(sid("fd00:1:0:5:7::/80", "")), csid(48, 32));
    assert_eq!(lengths(sid("fd00:1:0:5::/64", ", node: 16")), csid(48, 16));
    assert_eq!(lengths(sid("fd00:1:0:5::/64", ", node: 32, block: 32")), csid(32, 32));
}

#[test]
fn the_whole_grammar() {
    let file = good(EVERYTHING);
    assert_eq!(file.source, Some("fd00:0:1::1".parse().unwrap()));
    let port = |name: &str| file.ports.get(name).unwrap();
    assert_eq!(
        port("eth0"),
        &Port { mode: Mode::Auto, tenant: None, exit: None, edge: false, vlans: vec![], line: 10 }
    );
    assert_eq!(port("eth1").tenant.as_deref(), Some("blue"));
    assert_eq!(["eth0", "eth1", "eth2"].map(|name| port(name).edge), [false, false, true]);
    assert_eq!(file.sources, ["fd00::/32".parse().unwrap()]);
    // An attachment without a tag assigns the port's untagged frames.
    assert_eq!((port("eth2").mode, port("eth2").tenant.as_deref()), (Mode::Generic, Some("wire")));
    assert_eq!((file.limits.sids, file.limits.lists), (8192, 4096));

    let blue = file.tenants.get("blue").unwrap();
    assert_eq!(blue.table, Some(Table::Number(100)));
    assert!(!blue.falls_through);
    let sources: Vec<String> = blue.sources.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["10.0.5.0/24", "2001:db8:5::/48"]);
    let tags: Vec<Tags> = blue.attachments.iter().map(|attachment| attachment.tags).collect();
    assert_eq!(tags, [Tags { outer: 10, inner: 0 }, Tags { outer: 10, inner: 20 }]);
    let routes: Vec<String> = blue.routes.iter().map(|(prefix, _)| prefix.to_string()).collect();
    assert_eq!(routes, ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", "2001:db8::/32"]);
    assert_eq!(blue.routes[0].1, Steer::Named("to-osaka".into()));
    let Steer::Own(own) = &blue.routes[1].1 else { panic!("{:?}", blue.routes[1]) };
    assert_eq!(
        (own.form, text(&own.lists[0].segments)),
        (Form::EncapsRed, "<fd00:0:2::1, fd00:0:3::d4>".into())
    );
    let Steer::Own(whole) = &blue.routes[3].1 else { panic!("{:?}", blue.routes[3]) };
    assert_eq!(whole.form, Form::Encaps);
    let weights: Vec<u32> = file.policies["both"].lists.iter().map(|list| list.weight).collect();
    assert_eq!(weights, [3, 1]);
    let wire = file.tenants.get("wire").unwrap();
    assert_eq!(wire.frames, Some(Steer::Named("to-osaka".into())));
    assert!(wire.attachments.is_empty());

    let behaviors: Vec<&Behavior> =
        file.sids.iter().map(|(_, endpoint)| &endpoint.behavior).collect();
    let (nh6, nh4): (Ipv6Addr, _) = ("fd00:b::2".parse().unwrap(), [10, 0, 0, 1].into());
    let table = || Table::Number(100);
    assert_eq!(
        behaviors,
        [
            &Behavior::End,
            &Behavior::EndX { next_hop: nh6 },
            &Behavior::EndT { table: table() },
            &Behavior::EndDt4 { table: table() },
            &Behavior::EndDt6 { table: Table::Number(254) },
            &Behavior::EndDt46 { table: table() },
            &Behavior::EndDx2 { port: "eth2".into() },
            &Behavior::EndDx4 { next_hop: nh4 },
            &Behavior::EndDx6 { next_hop: "fd00:c::1".parse().unwrap() },
            &Behavior::EndB6Encaps { policy: Steer::Named("to-osaka".into()) },
            &Behavior::End,
            &Behavior::EndX { next_hop: nh6 },
        ]
    );
    let (x, out) = (&file.sids[1].1, &file.sids[5].1);
    assert_eq!(x.flavors, Flavors { psp: true, usd: true, ..Flavors::default() });
    assert_eq!(out.tags, Tags { outer: 10, inner: 20 });
    let csid = |node_function_bits| CsidLengths { block_bits: 32, node_function_bits };
    assert_eq!(file.sids[10].1.flavors.next_csid, Some(csid(16)));
    assert_eq!(file.sids[11].1.flavors.next_csid, Some(csid(32)));
    // The line, for errors that are detected later.
    assert!(EVERYTHING.lines().nth(x.line as usize - 1).unwrap().contains("fd00:0:1:e000::"));
}

#[test]
fn other_ways_to_write_it() {
    let file = good(
        "source: fd00::1\nlocators: [\"fd00:0:1::/48\"]\nports: {eth0: , eth1: {}}\n"
            .replace("eth0: ", "eth0: {}")
            .as_str(),
    );
    assert_eq!(file.ports.len(), 2);
    let file = good(
        "source: fd00::1\nlocators: [fd00:0:1::/48]\nports: {eth0: {}, eth1: {}}\n\
         policies: {p: [fd00:0:2::1]}\n\
         tenants:\n  a: {vrf: red, routes: {0.0.0.0/0: p, '::/0': p}}\n  \
         b: {frames: [fd00:0:2::2], attachments: [{port: eth0}, {port: eth1, vlan: 4094}]}\n\
         sids:\n  \"fd00:0:1:1::\": End\n  fd00:0:1:2::/64: {behavior: End.DT46, tenant: a}\n  \
         fd00:0:1:3::: {behavior: End.X, next_hop: fd00:b::1}\n  \
         fd00:0:1:4::: {behavior: End.B6.Encaps, policy: [fd00:0:2::1, \"fd00:0:3::\"]}\n  \
         fd00:0:1:5::: {behavior: End.DT4, vrf: red}\n",
    );
    assert_eq!(file.tenants["a"].table, Some(Table::Vrf("red".into())));
    assert_eq!(file.sids[1].1.behavior, Behavior::EndDt46 { table: Table::Vrf("red".into()) });
    assert_eq!(file.sids[2].1.behavior, Behavior::EndX { next_hop: "fd00:b::1".parse().unwrap() });
    assert_eq!(file.tenants["b"].attachments.len(), 1);
}

#[test]
fn tables_grow_with_the_file() {
    let sids: String = (0..5000).map(|n| format!("  fd00:0:1:{n:x}::: End\n")).collect();
    let file = good(&format!("locators: [fd00:0:1::/48]\nports: {{eth0: {{}}}}\nsids:\n{sids}"));
    assert_eq!((file.limits.sids, file.limits.prefixes), (8192, 4096));
}

#[test]
fn every_file_in_labs_is_right_and_fits_the_schema() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let labs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/dataplane");
    for entry in std::fs::read_dir(labs).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        good(&text);
        let value = json(&load(&text).0.unwrap());
        let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
}

#[test]
fn the_schema_agrees_with_the_grammar() {
    let schema = json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let bad = [
        "prts: {}\n",
        "locators: []\n",
        "ports: {eth0: {mode: fast}}\n",
        "ports: {eth0: {}}\npolicies: {p: to-osaka}\n",
        "ports: {eth0: {}}\nsource: 10.0.0.1/8\n",
        "ports: {eth0: {}}\nsids: {x: End}\n",
        "ports: {eth0: {}}\nsids: {'fd00::': End.Z}\n",
        "ports: {eth0: {}}\nsids: {'fd00::': {flavors: [PSP]}}\n",
        "ports: {eth0: {}}\ntenants: {a: {routes: {10.0.0.0: p}}}\n",
        "ports: {eth0: {}}\ntenants: {a: {attachments: [{port: eth0, vlan: 4095}]}}\n",
    ];
    for text in bad {
        assert!(!validator.is_valid(&json(&load(text).0.unwrap())), "{text}");
        assert!(parse("x", text).is_err(), "{text}");
    }
}

/// Converts a tree into JSON, as YAML plug-ins of editors do.
fn json(tree: &Tree) -> serde_json::Value {
    match &tree.value {
        Value::Scalar { text, plain: true } => {
            serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())
        }
        Value::Scalar { text, .. } => text.as_str().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => entries.iter().map(|e| (e.key.clone(), json(&e.value))).collect(),
    }
}

#[test]
fn a_check_of_a_function() {
    let health = |text: &str| {
        let file = good(&format!(
            "ports: {{eth0: {{}}}}\nlocators: [\"fd00:1::/48\"]\nsids:\n  fd00:1::f:0:0/112: \
             {{behavior: End.AN.NF, health: {text}}}\n"
        ));
        file.sids[0].1.health.clone().unwrap()
    };
    let least = health("{run: nft list table inet fw01}");
    assert_eq!(least.run, ["nft", "list", "table", "inet", "fw01"]);
    assert_eq!(
        least.to_string(),
        "`nft list table inet fw01` every 200ms, timeout 300ms, fall 2, rise 3"
    );
    let whole = "{run: [sh, -c, \"a | b\"], every: 2s, fall: 1, rise: 5}";
    assert_eq!(health(whole).to_string(), "`sh -c a | b` every 2s, timeout 2s, fall 1, rise 5");
    assert_eq!(health("{run: /bin/true, timeout: 20ms}").timeout.as_millis(), 20);
}

#[test]
fn earlier_names_of_forms_are_read() {
    for (form, old) in [("H.Encaps", "whole"), ("H.Encaps.Red", "reduced")] {
        let text = |form: &str| {
            format!(
                "source: fd00:1::1\nports: {{l: {{}}}}\npolicies: {{p: {{segments: [fd00::1], form: {form}}}}}\n"
            )
        };
        let [new, old] = [form, old].map(|form| parse("f.yaml", &text(form)).unwrap());
        assert_eq!(new.policies["p"].form, old.policies["p"].form, "{form}");
    }
}
