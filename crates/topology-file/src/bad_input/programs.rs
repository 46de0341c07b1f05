//! Tenants of hosts and routers, and their ports.

use super::super::parse;
use super::expect;

/// A lab whose node r1 has tenants in line 6 from column 5 on.
fn lab(router: &str, tenants: &str) -> String {
    format!(
        "name: a\nnodes:\n  h1: {{}}\n  h2: {{}}\n  r1: {{router: {router}, tenants: {{\n    \
         {tenants}}}}}\nlinks: [h1-r1, {{lan0: [h2, r1]}}]\n"
    )
}

#[test]
fn ports_are_the_ends_of_links() {
    let one = "t: {program: a.p4, ports: {h1: 1, lan0: 2}}";
    let topology = parse("a", &lab("linux", one)).unwrap();
    let r1 = topology.node("r1").unwrap();
    assert!(r1.is_judged("h1") && r1.is_judged("lan0") && !r1.is_judged("h2"));
    assert!(!topology.node("h1").unwrap().is_judged("r1"));
    let unknown = "t: {program: a.p4, ports: {lan1: 1}}";
    expect(&lab("frr", unknown), &[("6:32", "no link of `r1` leads to `lan1`", "`lan0`?")]);
    let twice = "t: {program: a.p4, ports: {h1: 1}}, u: {program: b.p4, ports: {h1: 1}}";
    expect(&lab("linux", twice), &[("6:68", "`h1` is a port of tenant `t`", "the other")]);
}

#[test]
fn nodes_without_an_interface_for_programs() {
    let one = "t: {program: a.p4, ports: {h1: 1}}";
    expect(&lab("virtual", one), &[("5:25", "`tenants` needs a kernel", "router: linux")]);
    expect(
        &lab("linux, dataplane: xdp", one),
        &[("5:39", "`tenants` and `dataplane: xdp` of `r1` both need XDP", "dataplane: kernel")],
    );
    let switch = lab("linux", one).replace("router: linux", "switch: openvswitch");
    let switch = switch.replace("[h1-r1, {lan0: [h2, r1]}]", "[h1-r1]");
    expect(&switch, &[("5:29", "`tenants` of the switch `r1` is a key of its `switch`", "kind")]);
}

#[test]
fn packets_fit_a_page() {
    let one = "t: {program: a.p4, ports: {h1: 1}}";
    let large = lab("linux", one).replace("name: a", "name: a\nmtu: 9000");
    expect(&large, &[("2:6", "packets of `h1-r1` are up to 9", "at most 3498")]);
    let large = lab("linux", one).replace("[h1-r1,", "[{h1-r1: {mtu: 9000}},");
    expect(&large, &[("7:23", "packets of `h1-r1` are up to 9", "at most 3498")]);
}
