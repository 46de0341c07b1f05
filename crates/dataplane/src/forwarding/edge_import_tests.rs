//! Edges and tenants of a node whose kernel has headend routes, which are imported.

use model::dataplane::Limits;
use netlink::{Encap, NextHop, Route};
use srv6::{EncapMode, SegmentList};

use super::*;
use crate::forwarding::{TableTenants, import};

/// Returns the state of a file after an import, and the rules in the notation of `ip -6 rule`.
fn imported(text: &str, links: Vec<Link>) -> (Forwarding, Vec<String>) {
    let state = resolve(&file(text), &Links::new(links.clone(), true), &mut Tenants::default());
    imported_into(state.unwrap(), links)
}

fn imported_into(mut forwarding: Forwarding, links: Vec<Link>) -> (Forwarding, Vec<String>) {
    let segments = SegmentList(vec![srv6::Sid("fd00:2::1".parse().unwrap())]);
    let hop = NextHop { via: None, interface: 1 };
    let route = Route {
        table: netlink::MAIN_TABLE,
        encap: Some(Encap::Seg6 { mode: EncapMode::Encaps, segments }),
        ..Route::new("fd00:9::/32".parse::<IpNet>().unwrap(), vec![hop])
    };
    let source = Some("fd00:1::9".parse().unwrap());
    let kernel = Kernel { routes: vec![route], links, source, ..Kernel::default() };
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

/// A tenant with a VLAN also chooses the tags within it.
#[test]
fn a_vlan_within_one_of_a_tenant_is_not_imported() {
    let vlan = |id, protocol, parent| Some(Vlan { id, protocol, parent: Some(parent) });
    let mut links = links();
    links.extend([
        Link { vlan: vlan(200, 0x88a8, 2), lower: Some(2), ..link(20, "out.200") },
        Link { vlan: vlan(11, 0x8100, 20), lower: Some(20), ..link(21, "out.200.11") },
        Link { kind: "macvlan".into(), lower: Some(21), ..link(22, "over") },
    ]);
    let text = "ports: {core: {}, out: {}}\ntenants: {t: {table: 100, attachments: [{port: out, vlan: 200}]}}";
    let (forwarding, written) = imported(text, links);
    assert_eq!(forwarding.attachments.len(), 1);
    for name in ["out.200", "out.200.11", "over"] {
        let rule = format!("5999: to fd00:1::/48 iif {name} blackhole");
        assert!(written.contains(&rule), "{rule}: {written:?}");
    }
    assert!(!written.iter().any(|line| line.contains("iif out.10 ")), "{written:?}");
}

/// A function, too, chooses the tags of its frames.
#[test]
fn no_vlan_on_the_port_of_a_function_is_imported() {
    let vlan = |id| Some(Vlan { id, protocol: 0x8100, parent: Some(2) });
    let mut links = links();
    links.extend([
        Link { vlan: vlan(11), lower: Some(2), ..link(20, "out.11") },
        Link { kind: "macvlan".into(), lower: Some(20), ..link(21, "over") },
    ]);
    // A function behind a bridge with the port.
    for member in ["out", "out.11"] {
        let mut bridged = links.clone();
        bridged
            .iter_mut()
            .filter(|link| link.name == member)
            .for_each(|link| link.master = Some(6));
        let text = "locators: [\"fd00:1::/48\"]\nports: {core: {}, out: {}}\n\
                sids: {\"fd00:1::f\": {behavior: End.AD, to: br0, back: br0}}\n";
        let file =
            dataplane_file::parse("file", text).unwrap_or_else(|problems| panic!("{problems}"));
        let machine = Links::new(bridged.clone(), true);
        let state = resolve(&file, &machine, &mut Tenants::default()).unwrap();
        assert!(imported_into(state, bridged).0.attachments.is_empty(), "{member}");
    }
    for (interface, closed) in [("out.10", &["out.10"][..]), ("over", &["out.11", "over"])] {
        let text = format!(
            "locators: [\"fd00:1::/48\"]\nports: {{core: {{}}, out: {{}}}}\n\
             sids: {{\"fd00:1::f\": {{behavior: End.AD, to: {interface}, back: {interface}}}}}\n"
        );
        let file =
            dataplane_file::parse("file", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let machine = Links::new(links.clone(), true);
        let state = resolve(&file, &machine, &mut Tenants::default()).unwrap();
        let (forwarding, written) = imported_into(state, links.clone());
        assert!(forwarding.attachments.is_empty(), "{interface}");
        for name in closed {
            let rule = format!("5999: iif {name} blackhole");
            assert!(written.contains(&rule), "{rule}: {written:?}");
        }
    }
}

/// Rules have no effect in a VRF: the program checks the sources of its frames.
#[test]
fn a_vlan_in_a_vrf_is_known_as_such() {
    let mut links = links();
    links[2].master = Some(4);
    let (forwarding, _) = imported("ports: {core: {}, out: {}}", links);
    assert!(forwarding.attachments.is_empty(), "its table has no headend route");
    assert!(forwarding.vlans[&3].is_in_vrf);
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
        "5997: from fd00:1::9/128 iif out goto 5999",
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
