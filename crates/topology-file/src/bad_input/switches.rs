//! Switches: keys of other nodes, links, tenants and their ports.

use super::super::parse;
use super::expect;

/// A lab with hosts, a router and a switch, whose value is in line 6 from column 7 on.
fn lab(switch: &str, links: &str) -> String {
    format!(
        "name: a\nnodes:\n  h1: {{}}\n  h2: {{}}\n  r1: {{router: linux}}\n  sw: {switch}\nlinks: [{links}]\n"
    )
}

/// The same with tenants from line 7 on.
fn tenants(text: &str) -> String {
    lab(&format!("{{switch: {{kind: openvswitch, tenants: {{\n    {text}}}}}}}"), "h1-sw, h2-sw")
}

const SWITCH: &str = "{switch: openvswitch}";

#[test]
fn kinds_and_keys() {
    assert!(parse("a", &lab(SWITCH, "h1-sw, sw-h2, r1-sw: {cost: 5}")).is_ok());
    let unknown = |kind: &str| lab(&format!("{{switch: {kind}}}"), "h1-sw");
    expect(&unknown("bridge"), &[("6:16", "`bridge` is not known here", "use openvswitch")]);
    expect(&unknown("{kind: bridge}"), &[("6:23", "`bridge` is not known here", "openvswitch")]);
    expect(&unknown("{tenants: {}}"), &[("6:8", "`kind` is missing", "add `kind:`")]);
    expect(&unknown("{kind: openvswitch, ports: 1}"), &[("6:36", "unknown key `ports`", "kind")]);
    expect(&unknown("[]"), &[("6:8", "expected openvswitch, or {kind: openvswitch", "")]);
    for (key, value) in [
        ("router", "frr"),
        ("srv6", "true"),
        ("routing", "[ospf]"),
        ("loopback", "[10.0.0.1]"),
        ("config", "x"),
        ("attach", "eth9"),
        ("via", "nfqueue"),
        ("bypass", "true"),
        ("dataplane", "xdp"),
        ("dataplane", "kernel"),
        ("functions", "{fw: {mark: 1}}"),
    ] {
        let text = lab(&format!("{{switch: openvswitch, {key}: {value}}}"), "h1-sw");
        expect(&text, &[("6:29", &format!("`{key}` is not for switches"), "remove it")]);
    }
    let locator = "{switch: openvswitch, srv6: {locator: 'fd00:0:9::/48'}}";
    expect(&lab(locator, "h1-sw"), &[("6:29", "`srv6` is not for switches", "remove it")]);
}

#[test]
fn links_of_a_switch() {
    expect(&lab(SWITCH, ""), &[("6:3", "the switch `sw` has no link", "`h1-sw`")]);
    expect(&lab(SWITCH, "h1-sw, sw-h1"), &[("7:16", "`h1` has a link to `sw`", "one link")]);
    expect(
        &lab(SWITCH, "{h1-sw: {rate: 1mbit}}"),
        &[("7:18", "`rate` is not for links of the switch", "remove it, or put a router between")],
    );
    expect(
        &lab(SWITCH, "h1-sw, {lan0: [h1, sw]}"),
        &[("7:28", "`sw` is a switch, and not a member", "`h1-sw`")],
    );
    let more =
        |nodes: &str, link: &str| lab(&format!("{SWITCH}\n  {nodes}"), &format!("h1-sw, {link}"));
    let two = "s2: {switch: openvswitch}";
    expect(
        &more(two, "sw-s2"),
        &[("7:3", "the switch `s2` has no link", "links:"), ("8:16", "are switches", "a router")],
    );
    expect(
        &more("x1: {router: virtual}", "x1-sw"),
        &[("8:16", "`x1` has no interface for the switch", "use a host")],
    );
    expect(&more("br0: {}", "br0-sw"), &[("8:16", "the switch's own bridge", "rename")]);
    let large = lab(SWITCH, "h1-sw").replace("name: a", "name: a\nmtu: 9000");
    expect(&large, &[("2:6", "packets of `sw` are up to 9", "at most 3498")]);
}

#[test]
fn tenants_of_a_switch() {
    assert!(parse("a", &tenants("t: {program: a.p4, ports: {h1: 1, h2: 0}}")).is_ok());
    expect(
        &tenants("t: {program: a.p4, ports: {h3: 1}}"),
        &[("7:32", "no link of `sw` leads to `h3`", "did you mean `h1`?")],
    );
    expect(
        &tenants("t: {program: a.p4, ports: {internet: 1}}"),
        &[("7:32", "no link of `sw` leads to `internet`", "name one of h1, h2")],
    );
    expect(
        &tenants("t: {program: a.p4, ports: {h1: 1}}, u: {program: b.p4, ports: {h1: 1}}"),
        &[("7:68", "`h1` is a port of tenant `t`", "remove it from the other")],
    );
    for (keys, place, message, help) in [
        ("ports: {h1: 1}", "7:5", "`program` is missing", "add `program:`"),
        ("program: a", "7:5", "`ports` is missing", "add `ports:`"),
        ("program: '', ports: {h1: 1}", "7:18", "the program has no name", "filter.p4"),
        ("program: a, ports: {}", "7:21", "the tenant has no ports", "{eth1: 1}"),
        ("program: a, ports: {h1: 300}", "7:33", "300 cannot be a port's number", "below 256"),
        ("program: a, ports: {h1: 1}, entries: []", "7:37", "found a list", ""),
        ("program: a, ports: {h1: 1}, device: 0", "7:45", "0 is not a device id", "from 1 on"),
        ("program: a, ports: {h1: 1}, default: maybe", "7:46", "`maybe` is not known", "drop"),
        ("program: a, ports: {h1: 1}, deadline: 0s", "7:47", "a tenant's deadline", "100ms"),
        ("program: a, ports: {h1: 1}, hold: 2", "7:43", "`2` has no unit", "2s"),
        ("program: a, ports: {h1: 1}, queues: 40", "7:45", "`queues` cannot be 40", "2 to 31"),
        ("program: a, ports: {h1: 1}, isolation: cage", "7:48", "`cage` is not known", "process"),
        ("program: a, ports: {h1: 1}, cpu: 0", "7:42", "0 percent", "1 to 10000"),
        ("program: a, ports: {h1: 1}, vm_info: {}", "7:37", "found a map", ""),
        ("program: a, ports: {h1: 1}, vm_inf: a", "7:37", "unknown key `vm_inf`", "`vm_info`"),
    ] {
        expect(&tenants(&format!("t: {{{keys}}}")), &[(place, message, help)]);
    }
}

#[test]
fn a_switch_is_nothing_that_packets_are_sent_to() {
    let text = |rest: &str| lab(SWITCH, "h1-sw, h2-sw") + rest;
    let message = "`sw` is a switch, which has no address";
    expect(&text("tests: [{from: h1, ping: sw}]"), &[("8:26", message, "a host or a router")]);
    let application = "applications: {x: {from: h1, to: sw, demand: 1mbit}}";
    expect(&text(application), &[("8:34", message, "a host or a router")]);
}
