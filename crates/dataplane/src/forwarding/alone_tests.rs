use std::net::Ipv6Addr;

use netlink::{Mac, NextHop, Route, Vlan};

use super::*;
use crate::forwarding::{Links, SlowPath, Tenants, resolve};

fn link(index: u32, name: &str) -> Link {
    let mac = Some(Mac([2, 0, 0, 0, 0, index as u8]));
    Link { index, name: name.into(), mac, up: true, ..Link::default() }
}

fn links() -> Vec<Link> {
    let vlan = |id, parent| Some(Vlan { id, protocol: 0x8100, parent: Some(parent) });
    vec![
        link(2, "eth0"),
        link(3, "eth1"),
        Link { vrf_table: Some(100), kind: "vrf".into(), ..link(4, "red") },
        Link { vlan: vlan(10, 3), ..link(5, "eth1.10") },
        Link { vlan: vlan(20, 3), master: Some(4), ..link(6, "eth1.20") },
        Link { kind: "bridge".into(), ..link(7, "br") },
        Link { vlan: vlan(30, 3), master: Some(7), ..link(8, "eth1.30") },
    ]
}

const HEAD: &str =
    "source: fd00:0:1::1\nlocators: [\"fd00:0:1::/48\"]\nports: {eth0: {}, eth1: {}}\n";

/// Returns the kernel's routes and rules for a file, or the entries that it cannot handle.
fn alone(rest: &str, kernel: &Kernel) -> Result<SlowPath, Vec<String>> {
    let text = format!("{HEAD}{rest}");
    let file = dataplane_file::parse("the file", &text);
    let file = file.unwrap_or_else(|problems| panic!("{problems}"));
    let mut tenants = Tenants::default();
    let links = Links::new(kernel.links.clone(), true);
    let forwarding = resolve(&file, &links, &mut tenants).unwrap();
    let name = |tenant| tenants.name(tenant).unwrap_or_default().to_owned();
    let names = Names { of: &forwarding, tenant: &name };
    match SlowPath::alone(names, kernel, &mut |_| None) {
        Ok(path) => Ok(path),
        Err(Error::NotInKernel { entries, more: 0 }) => {
            Err(entries.iter().map(ToString::to_string).collect())
        }
        Err(error) => panic!("{error}"),
    }
}

fn kernel() -> Kernel {
    Kernel { links: links(), ..Kernel::default() }
}

#[track_caller]
fn refused(rest: &str, kernel: &Kernel, expected: &[&str]) {
    let found = alone(rest, kernel).expect_err(rest);
    let fits = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
    assert!(fits, "{found:#?}\n{expected:#?}");
}

#[test]
fn entries_with_a_counterpart_in_the_kernel_are_accepted() {
    let path = alone(
        "sids:\n  \"fd00:0:1::1\": End\n  \"fd00:0:1::2\": {behavior: End.X, next_hop: \"fd00:9::1\"}\n  \
         \"fd00:0:1::3\": {behavior: End.DT4, vrf: red}\n  \"fd00:0:1::4\": {behavior: End.DT6, table: 7}\n  \
         \"fd00:0:1::5\": {behavior: End.B6.Encaps, policy: {segments: [\"fd00:2::1\"], form: H.Encaps}}\n\
         tenants:\n  blue: {attachments: [{port: eth1, vlan: 10}], routes: {10.0.0.0/8: [\"fd00:2::1\"]}}\n  \
         red: {vrf: red, attachments: [{port: eth1, vlan: 20}]}\n",
        &kernel(),
    );
    // Each has an unreachable fallback route, and the locator is closed to tenants.
    let path = path.unwrap();
    assert_eq!(path.routes().filter(|route| route.encap.is_some()).count(), 6);
    assert_eq!(path.routes().filter(|route| route.encap.is_none()).count(), 7);
}

#[test]
fn entries_without_a_counterpart_in_the_kernel_are_named() {
    refused(
        "sids:\n  \"fd00:0:1::1\": {behavior: End.DT46, table: 7}\n  \
         \"fd00:0:1::2\": {behavior: End.DX6, next_hop: \"::\", vlan: 10}\n  \
         \"fd00:0:1::3\": {behavior: End.B6.Encaps, policy: [\"fd00:2::1\"]}\n",
        &kernel(),
        &[
            "sid fd00:0:1::1: the kernel finds its table only by a VRF",
            "sid fd00:0:1::2: the kernel cannot tag decapsulated packets",
            "sid fd00:0:1::3: the kernel has no End.B6.Encaps.Red",
        ],
    );
    refused(
        "tenants:\n  wire: {attachments: [{port: eth0, vlan: 9}], frames: [\"fd00:2::1\"]}\n  \
         blue:\n    attachments: [{port: eth1, vlan: 10}, {port: eth1, vlan: 11}]\n    routes:\n      \
         10.0.0.0/8: {lists: [{segments: [\"fd00:2::1\"]}, {segments: [\"fd00:2::2\"]}]}\n      \
         fd00:2::/32: [\"fd00:2::1\"]\n",
        &kernel(),
        &[
            "attachment eth1 vlan 11: the kernel needs an interface with these tags",
            "frames of eth0 vlan 9: only XDP takes whole frames",
            "route blue 10.0.0.0/8: the kernel does not distribute flows over lists",
            "route blue fd00:2::/32: SIDs or segments are in it",
        ],
    );
}

#[test]
fn no_rule_leads_out_of_a_vrf_or_a_bridge() {
    let tenant = |vlan, routes| {
        format!("tenants: {{blue: {{attachments: [{{port: eth1, vlan: {vlan}}}]{routes}}}}}\n")
    };
    let routes = ", routes: {10.0.0.0/8: [\"fd00:2::1\"]}";
    refused(&tenant(20, routes), &kernel(), &["tenant blue: eth1.20 is in a VRF"]);
    refused(&tenant(30, routes), &kernel(), &["tenant blue: eth1.30 is in a bridge"]);
    // In a bridge, tenants would not be kept from SIDs; in a VRF they are.
    refused(&tenant(30, ""), &kernel(), &["tenant blue: eth1.30 is in a bridge"]);
    alone(&tenant(20, ""), &kernel()).unwrap();
}

#[test]
fn a_route_of_another_program_is_left_alone() {
    let sid: Ipv6Addr = "fd00:0:1::1".parse().unwrap();
    let hop = NextHop { via: None, interface: 2 };
    let mut taken = kernel();
    taken.routes = vec![Route::new(IpNet::from(IpAddr::V6(sid)), vec![hop])];
    let sids = "sids: {\"fd00:0:1::1\": End}\n";
    refused(sids, &taken, &["sid fd00:0:1::1: another program has a route for it"]);
    let mut own = kernel();
    own.addresses.insert(sid.into());
    refused(sids, &own, &["sid fd00:0:1::1: it is an address of this node"]);
    let source = |text: &str| Kernel { source: Some(text.parse().unwrap()), ..kernel() };
    let binding = "sids:\n  \"fd00:0:1::1\": {behavior: End.B6.Encaps, \
                   policy: {segments: [\"fd00:2::1\"], form: H.Encaps}}\n";
    refused(binding, &source("fd00:5::5"), &["source fd00:0:1::1: the kernel's is fd00:5::5"]);
    alone(binding, &source("fd00:0:1::1")).unwrap();
    // Nothing is encapsulated here.
    alone(sids, &source("fd00:5::5")).unwrap();
}

#[test]
fn entries_are_unlimited_and_a_message_is_limited() {
    let sids = |behavior: &str| -> String {
        let sids = (1..70_000)
            .map(|n: u32| format!("  \"fd00:0:1::{:x}:{:x}\": {behavior}\n", n >> 16, n & 0xffff));
        format!("sids:\n{}", sids.collect::<String>())
    };
    let path = alone(&sids("End"), &kernel()).unwrap();
    assert_eq!(path.routes().count(), 2 * 69_999);
    let file = format!("{HEAD}{}", sids("{behavior: End.DT4, table: 7}"));
    let file = dataplane_file::parse("the file", &file).unwrap();
    let links = Links::new(links(), true);
    let forwarding = resolve(&file, &links, &mut Tenants::default()).unwrap();
    let names = Names { of: &forwarding, tenant: &|_| String::new() };
    let error = check(&forwarding, &kernel(), names).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1 + MAX_SHOWN + 1, "{error}");
    assert!(error.ends_with("… and 69979 more"), "{error}");
}
