//! Edges and tenants of a node whose kernel has headend routes, which are imported.

use model::dataplane::Limits;
use netlink::{Encap, NextHop, Route};
use srv6::{EncapMode, SegmentList};

use super::*;
use crate::forwarding::{TableTenants, import};

/// Returns the state of a file after an import, and the rules in the notation of `ip -6 rule`.
fn imported(text: &str, links: Vec<Link>) -> (Forwarding, Vec<String>) {
    let segments = SegmentList(vec![srv6::Sid("fd00:2::1".parse().unwrap())]);
    let hop = NextHop { via: None, interface: 1 };
    let route = Route {
        table: netlink::MAIN_TABLE,
        encap: Some(Encap::Seg6 { mode: EncapMode::Encaps, segments }),
        ..Route::new("fd00:9::/32".parse::<IpNet>().unwrap(), vec![hop])
    };
    let source = Some("fd00:1::9".parse().unwrap());
    let kernel = Kernel { routes: vec![route], links, source, ..Kernel::default() };
    let mut forwarding = state(text);
    let done = import(&mut forwarding, &kernel, &mut TableTenants::default(), &Limits::default());
    assert_eq!(done.taken, 1, "{:?}", done.left);
    let written = lines(&forwarding, &kernel);
    (forwarding, written)
}

/// The tenant chooses its tags: frames of a VLAN are not the node's own because its routes are.
#[test]
fn a_vlan_on_a_tenants_port_is_not_imported() {
    let text = "sources: [\"fd00:1::/32\"]\nports: {core: {}, out: {tenant: t}}\ntenants: {t: {table: 100}}";
    let (forwarding, written) = imported(text, links());
    assert!(forwarding.attachments.is_empty());
    for rule in
        ["5998: from fd00:1::/32 iif out.10 blackhole", "5999: to fd00:1::/48 iif out.10 blackhole"]
    {
        assert!(written.iter().any(|line| line == rule), "{rule}: {written:?}");
    }
}

/// The kernel forwards frames that the program does not inspect.
#[test]
fn an_edge_stays_closed_to_sources_of_the_domain() {
    let text = "sources: [\"fd00:1::/32\"]\nports: {core: {}, out: {sids: false}}";
    let (forwarding, written) = imported(text, links());
    assert!(matches!(forwarding.ports[&2].owner, Owner::Tenant(tenant) if tenant <= TABLE_TENANTS));
    for rule in [
        "5998: from fd00:1::/32 iif out blackhole",
        "5998: from fd00:1::/32 iif out.10 blackhole",
        // What the kernel itself encapsulates.
        "5997: from fd00:1::9/128 iif out goto 6000",
    ] {
        assert!(written.iter().any(|line| line == rule), "{rule}: {written:?}");
    }
    assert!(!written.iter().any(|line| line.starts_with("5998") && line.contains("core")));
}

/// Before Linux 6.19, an HSR device does not show the interface that is its interlink.
#[test]
fn a_ring_that_is_not_a_port_is_closed() {
    let mut links = links();
    links.push(Link { kind: "hsr".into(), slaves: vec![7, 1], ..link(20, "ring") });
    let text = "ports: {core: {}, out: {sids: false}}";
    assert!(closed_at(text, links.clone()).contains(&"ring".to_owned()));
    assert!(!closed_at("ports: {core: {}, out: {}}", links).contains(&"ring".to_owned()));
}
