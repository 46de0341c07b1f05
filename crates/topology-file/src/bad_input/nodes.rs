//! Nodes: kinds, protocols, functions, attachments.

use super::super::parse;
use super::{expect, lab, nodes};

#[test]
fn a_data_plane_without_a_port_is_refused() {
    let text = "name: x\nnodes:\n  r1: {router: linux, dataplane: xdp}\n";
    expect(text, &[("3:3", "`r1` has no link", "dataplane: kernel")]);
}

#[test]
fn nodes_and_routing() {
    expect(
        &nodes("  h1: {srv6: true, routing: [ospf], loopback: [10.0.0.1], config: x}"),
        &[
            ("3:8", "`srv6` is for routers", "add `router: frr`"),
            ("3:20", "`routing` is for routers", "add `router: frr`"),
            ("3:37", "`loopback` is for routers", "add `router: frr`"),
            ("3:59", "`config` is for routers", "add `router: frr`"),
        ],
    );
    expect(
        &nodes("  h1: {dataplane: xdp}"),
        &[("3:8", "`dataplane: xdp` is for routers, and `h1` is a host", "add `router: frr`")],
    );
    expect(
        &nodes("  r1: {router: frr, srv6: false, dataplane: xdp}"),
        &[("3:34", "`dataplane: xdp` is for SRv6, which `r1` does not speak", "`srv6: false`")],
    );
    expect(
        &nodes("  r1: {router: frr, dataplane: dpdk}"),
        &[("3:32", "`dpdk` is not known here", "use kernel, xdp")],
    );
    expect(&nodes("  r1: {router: linux, config: x}"), &[("3:23", "is for FRR", "router: frr")]);
    expect(
        &nodes("  r1: {router: linux, routing: [ospf]}"),
        &[("3:23", "`r1` runs no routing protocol", "[static]")],
    );
    expect(&lab("routing: [ospf, ospf]"), &[("3:17", "`ospf` is listed twice", "remove one")]);
    expect(
        &lab("routing: [ospf, rip]"),
        &[("3:17", "`rip` and `ospf` both route IPv4", "one protocol per")],
    );
    expect(
        &lab("routing: [isis, ripng]"),
        &[("3:17", "`ripng` and `isis` both route IPv6", "one protocol per")],
    );
    expect(
        &nodes("  r1: {router: frr, as: 65001}"),
        &[("3:21", "`as` is for BGP, which `r1` does not run", "add `routing: [bgp]`")],
    );
    expect(
        &nodes("  r1: {router: frr, routing: [bgp], as: 65535}"),
        &[("3:41", "65535 is not an autonomous system number", "write a number such as 65001")],
    );
    expect(&nodes("  h1: {as: 65001}"), &[("3:8", "`as` is for routers", "add `router: frr`")]);
    expect(&lab("routing: [eigrp]"), &[("3:11", "`eigrp` is not known here", "static, ospf")]);
    expect(
        &nodes("  r1: {router: frr, loopback: [10.0.0.1, 10.0.0.2]}"),
        &[("3:42", "a second loopback", "at most one IPv4")],
    );
    expect(
        &nodes("  r1: {router: frr, loopback: [10.0.0.1/32]}"),
        &[("3:32", "`10.0.0.1/32` is not an address", "without a length")],
    );
}

#[test]
fn rip_reaches_fourteen_hops() {
    let chain = |routers: usize, config: &str| {
        let mut text = String::from("name: x\nrouting: [ospf6, rip]\nnodes:\n");
        for n in 1..=routers {
            text += &format!("  r{n}: {{router: frr{config}}}\n");
        }
        text += "links: [r1-r2";
        for n in 2..routers {
            text += &format!(", r{n}-r{}", n + 1);
        }
        text + "]\n"
    };
    assert!(parse("lab.yaml", &chain(15, "")).is_ok());
    let message = "`r1` and `r16` are 15 hops apart, and RIP reaches no farther than 14";
    expect(&chain(16, ""), &[("2:1", message, "use another protocol")]);
    assert!(parse("lab.yaml", &chain(16, ", config: x")).is_ok());
}

#[test]
fn functions() {
    let node = |text: &str| format!("name: x\nnodes:\n  r1: {{{text}}}\n");
    let function = |text: &str| node(&format!("router: linux, functions: {{{text}}}"));
    let at = |column: u32| format!("3:{column}");
    let one = |text: &str, column: u32, message: &str, help: &str| {
        expect(text, &[(at(column).as_str(), message, help)]);
    };
    one(&node("functions: {fw: {}}"), 8, "`r1` is a host", "router: linux");
    let silent = node("router: linux, srv6: false, functions: {fw: {}}");
    one(&silent, 36, "which `r1` does not speak", "srv6: false");
    let kernel = node("router: linux, dataplane: kernel, functions: {fw: {}}");
    one(&kernel, 34, "no End.AN.NF", "dataplane: xdp");
    one(&function("Fw: {}"), 35, "`Fw` cannot name a function", "a-z");
    one(&function("fw: {bits: 33}"), 46, "an argument of 33 bits", "write 0 to 32");
    one(&function("fw: {mark: 0x10000}"), 46, "0x10000 has more than 16 bits", "`bits:`");
    one(&function("fw: {mark: -1}"), 46, "`-1` is not a mark", "0x1111");
    one(&function("fw: {rules: a, file: b}"), 50, "in the file, or here", "remove it");
    one(&function(r#"fw: {rules: "a\0b"}"#), 47, "have a NUL byte", "remove it");
    one(&function("fw: {health: {run: a | b}}"), 54, "`|` is for a shell", "[sh, -c");

    let lab = |functions: &str| {
        format!(
            "name: x\nnodes: {{h1: {{}}, h2: {{}}, r1: {{router: linux, functions: {{fw: {{}}, ids: \
             {{}}}}}}}}\nlinks: [h1-r1, h2-r1]\napplications:\n  a: {functions}\n"
        )
    };
    let app = |functions: &str| {
        lab(&format!("{{from: h1, to: h2, demand: 1mbit, functions: {functions}}}"))
    };
    expect(&app("[fw, fww]"), &[("5:56", "no function is called `fww`", "did you mean `fw`?")]);
    expect(&app("[nat]"), &[("5:52", "no function is called `nat`", "functions: {nat: {}}")]);
    expect(&app("[fw, ids, fw]"), &[("5:61", "`fw` is listed twice", "remove one")]);
    let own = lab("{from: r1, to: h2, demand: 1mbit, functions: [fw]}");
    expect(&own, &[("5:52", "`fw` is at `r1` alone", "another router")]);
    let quick = lab("{from: h1, to: h2, class: low-latency, functions: [fw]}");
    expect(&quick, &[("5:45", "need the class `bandwidth`", "a demand")]);
    let many: Vec<String> = (0..10).map(|n| format!("f{n}")).collect();
    let text = format!(
        "name: x\nnodes: {{h1: {{}}, h2: {{}}, r1: {{router: linux, functions: {{{}: {{}}}}}}}}\nlinks: \
         [h1-r1, h2-r1]\napplications:\n  a: {{from: h1, to: h2, demand: 1mbit, functions: [{}]}}\n",
        many.join(": {}, "),
        many.join(", ")
    );
    expect(&text, &[("5:40", "10 functions are too many segments", "write 9 at most")]);
}

#[test]
fn attached_nodes_that_make_no_sense_are_refused() {
    let attached = |options: &str| {
        nodes(&format!("  gw: {{{options}}}\n  r1: {{router: linux}}\nlinks: [gw-r1]"))
    };
    for (options, place, message, help) in [
        ("attach: lo", "3:16", "`lo` cannot be attached", "such as eth1"),
        ("attach: a-name-too-long-for-linux", "3:16", "cannot be attached", "such as eth1"),
        ("attach: eth/1", "3:16", "`eth/1` cannot be attached", "such as eth1"),
        ("via: nfqueue", "3:8", "`via` is for attached interfaces", "add `attach: eth1`"),
        ("attach: eth1, via: nfqueue", "3:22", "the networks behind it are unknown", "prefixes: ["),
        ("attach: eth1, bypass: true", "3:22", "`bypass` is for packets", "via: nfqueue"),
        ("attach: eth1, router: linux", "3:22", "is attached, and a router", "remove it"),
        ("attach: eth1, srv6: true", "3:22", "`srv6` needs a kernel", "router: linux"),
    ] {
        expect(&attached(options), &[(place, message, help)]);
    }
    let queued = "attach: eth1, via: nfqueue, prefixes: [10.0.1.0/28]";
    expect(
        &nodes(&format!(
            "  gw: {{{queued}}}\n  r1: {{router: linux}}\nlinks: [{{gw-r1: {{ipv4: 10.0.1.0/24}}}}]"
        )),
        &[("5:24", "`10.0.1.0/24` overlaps 10.0.1.0/28 behind gw", "do not overlap")],
    );
    expect(
        &nodes(
            "  a: {attach: eth1}\n  b: {attach: eth1}\n  r1: {router: linux}\nlinks: [a-r1, b-r1]",
        ),
        &[("4:15", "`eth1` is attached as `a` already", "attach it once")],
    );
    expect(&nodes("  a: {attach: eth1}"), &[("3:7", "`a` has 0 links", "give it one")]);
}

#[test]
fn virtual_routers_have_no_kernel() {
    for (options, place, message) in [
        ("srv6: {locator: fd00:0:9::/48}", "3:25", "`srv6` needs a kernel"),
        ("routing: [ospf]", "3:25", "`routing` needs a kernel"),
        ("config: x", "3:25", "`config` needs a kernel"),
        ("dataplane: xdp", "3:25", "`dataplane` needs a kernel"),
        ("functions: {fw: {mark: 1}}", "3:25", "`functions` needs a kernel"),
    ] {
        let file = nodes(&format!("  x1: {{router: virtual, {options}}}"));
        expect(&file, &[(place, message, "use `router: linux`")]);
    }
    expect(
        &nodes("  x1: {router: virtual}\n  r1: {router: frr}\nlinks: [r1-x1]"),
        &[("5:9", "`x1` is a virtual router, which has static routes alone", "`engine: true`")],
    );
    let fixed =
        nodes("  x1: {router: virtual}\n  r1: {router: frr, routing: [static]}\nlinks: [r1-x1]");
    assert!(parse("lab.yaml", &fixed).is_ok());
    expect(
        &nodes("  x1: {router: virtual}\ncontroller: true"),
        &[("3:3", "no daemon can run on `x1`", "remove `controller: true`")],
    );
}
