//! Rules that close ports, and warnings.

use netlink::{Mac, RouteKind, Vlan};

use super::*;
use crate::forwarding::{Endpoint, Links, TABLE_TENANTS, Tenants, resolve};

#[path = "edge_function_tests.rs"]
mod functions;
#[path = "edge_import_tests.rs"]
mod imports;

fn link(index: u32, name: &str) -> Link {
    let mac = Some(Mac([2, 0, 0, 0, 0, index as u8]));
    Link { index, name: name.into(), mac, up: true, ..Link::default() }
}

/// Two ports, a VLAN on the second one, and a VRF that contains the third one.
fn links() -> Vec<Link> {
    let vlan = Some(Vlan { id: 10, protocol: 0x8100, parent: Some(2) });
    vec![
        link(1, "core"),
        link(2, "out"),
        Link { vlan, lower: Some(2), ..link(3, "out.10") },
        Link { kind: "vrf".into(), vrf_table: Some(100), ..link(4, "red") },
        Link { master: Some(4), ..link(5, "inner") },
        Link { kind: "bridge".into(), ..link(6, "br0") },
        Link { master: Some(6), ..link(7, "bridged") },
    ]
}

fn file(text: &str) -> File {
    let head = "locators: [\"fd00:1::/48\"]\nsids: {\"fd00:1::1\": End}\n";
    let text = format!("{head}{text}");
    dataplane_file::parse("file", &text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn state(text: &str) -> Forwarding {
    resolve(&file(text), &Links::new(links(), true), &mut Tenants::default()).unwrap()
}

/// Returns the rules in the notation of `ip -6 rule`.
fn written(text: &str) -> Vec<String> {
    written_with(text, links())
}

fn written_with(text: &str, links: Vec<Link>) -> Vec<String> {
    written_on(text, &Kernel { links, ..Kernel::default() })
}

fn written_on(text: &str, kernel: &Kernel) -> Vec<String> {
    lines(&state(text), kernel)
}

fn lines(forwarding: &Forwarding, kernel: &Kernel) -> Vec<String> {
    let line = |rule: &InterfaceRule| {
        let words = [
            rule.from.map(|net| format!(" from {net}")),
            rule.to.map(|net| format!(" to {net}")),
            rule.interface.as_ref().map(|name| format!(" iif {name}")),
        ];
        let words: String = words.into_iter().flatten().collect();
        let what = match (rule.goto, rule.table) {
            (Some(priority), _) => format!("goto {priority}"),
            (None, 0) => "blackhole".into(),
            (None, table) => table.to_string(),
        };
        format!("{}:{words} {what}", rule.priority)
    };
    rules(forwarding, kernel).iter().map(line).collect()
}

#[test]
fn a_file_that_says_nothing_of_it_has_no_rules() {
    assert_eq!(written("ports: {core: {}, out: {}}"), [""; 0]);
}

#[test]
fn an_edge_is_closed_with_the_vlans_above_it() {
    assert_eq!(
        written("ports: {core: {}, out: {sids: false}}"),
        ["5999: to fd00:1::/48 iif out blackhole", "5999: to fd00:1::/48 iif out.10 blackhole"]
    );
}

#[test]
fn a_vlan_of_the_domain_stays_open_on_an_edge_port() {
    let mut links = links();
    links.push(Link { lower: Some(3), ..link(8, "macvlan") });
    let vlan = Some(Vlan { id: 11, protocol: 0x8100, parent: Some(2) });
    links.push(Link { vlan, lower: Some(2), ..link(9, "out.11") });
    assert_eq!(
        written_with("ports: {core: {}, out: {sids: false, vlans: [10]}}", links),
        ["5999: to fd00:1::/48 iif out blackhole", "5999: to fd00:1::/48 iif out.11 blackhole"]
    );
}

/// A SID may be in another table than the main one, and in a VRF's, which only its interfaces use.
#[test]
fn an_edge_is_closed_to_sids_that_only_the_kernel_has() {
    let sids = [
        (MAIN_TABLE, "fd00:1::7/128"),
        (MAIN_TABLE, "fd00:7::1/128"),
        (9, "fd00:7::2/128"),
        (100, "fd00:7::3/128"),
    ];
    let sids = sids.map(|(table, sid)| (table, sid.parse().unwrap())).into();
    let kernel = Kernel { links: links(), sids, ..Kernel::default() };
    assert_eq!(
        written_on("ports: {core: {tenant: t}}\ntenants: {t: {table: 9}}", &kernel),
        [
            "5999: to fd00:1::/48 iif core blackhole",
            "5999: to fd00:7::1/128 iif core blackhole",
            "5999: to fd00:7::2/128 iif core blackhole",
        ]
    );
    assert_eq!(
        written_on("sources: [\"fd00:8::/48\"]\nports: {core: {}}", &kernel),
        [
            "6003: from fd00:8::/48 to fd00:1::/48 254",
            "6003: from fd00:8::/48 to fd00:7::1/128 254",
            "6003: to fd00:1::/48 iif lo 254",
            "6003: to fd00:7::1/128 iif lo 254",
            "6004: to fd00:1::/48 blackhole",
            "6004: to fd00:7::1/128 blackhole",
        ]
    );
}

#[test]
fn an_edge_is_closed_to_prefixes_if_there_are_too_many_sids() {
    let sid = |number: usize| format!("fd00:7::{:x}:{number:x}/128", number / 600).parse().unwrap();
    let kernel = |count| {
        let sids = (0..count).map(|number| (MAIN_TABLE, sid(number))).collect();
        Kernel { links: links(), sids, ..Kernel::default() }
    };
    let text = "ports: {core: {sids: false}, out: {}}";
    assert_eq!(written_on(text, &kernel(1024)).len(), 1 + 1024);
    assert_eq!(warnings(&state(text), &kernel(1024), false), [""; 0]);
    assert_eq!(
        written_on(text, &kernel(1025)),
        ["fd00:1::/48", "fd00:7::/112", "fd00:7::1:0/112"]
            .map(|net| format!("5999: to {net} iif core blackhole"))
    );
    let warned = warnings(&state(text), &kernel(1025), false);
    assert!(warned.len() == 1 && warned[0].contains("such as fd00:7::/112"), "{warned:?}");
    // SIDs of a VRF's table have no rules, so that no prefix is closed for them.
    let mut of_vrf = kernel(1025);
    of_vrf.sids = of_vrf.sids.into_iter().map(|(_, sid)| (9, sid)).collect();
    of_vrf.links.push(Link { vrf_table: Some(9), ..link(40, "vrf9") });
    assert_eq!(warnings(&state(text), &of_vrf, false), [""; 0]);
}

#[test]
fn a_sid_that_comes_before_policy_rules_is_warned_of() {
    let sids = [(LOCAL_TABLE, "fd00:7::1/128".parse().unwrap())].into();
    let kernel = Kernel { links: links(), sids, ..Kernel::default() };
    let found = warnings(&state("ports: {core: {}, out: {sids: false}}"), &kernel, false);
    assert!(found.len() == 1 && found[0].contains("fd00:7::1/128 is a SID"), "{found:?}");
}

/// The program does not distinguish the protocols of tags.
#[test]
fn a_vlan_interface_of_another_protocol_is_closed_if_a_tenant_has_its_tags() {
    let mut links = links();
    let on = |id, protocol, parent| Vlan { id, protocol, parent: Some(parent) };
    let vlan = Some(on(20, 0x88a8, 2));
    links.push(Link { vlan, lower: Some(2), ..link(20, "out.20") });
    let vlan = Some(on(30, 0x8100, 3));
    links.push(Link { vlan, lower: Some(3), ..link(30, "out.10.30") });
    let closed = |tags: &str| -> Vec<String> {
        let tenant = format!("tenants: {{t: {{table: 9, attachments: [{{port: out, {tags}}}]}}}}");
        let file = file(&format!("ports: {{core: {{}}, out: {{}}}}\n{tenant}"));
        let links = Links::new(links.clone(), true);
        let found = resolve(&file, &links, &mut Tenants::default()).unwrap();
        let kernel = Kernel { links: links.links, ..Kernel::default() };
        rules(&found, &kernel).into_iter().filter_map(|rule| rule.interface).collect()
    };
    assert_eq!(closed("vlan: 20"), ["out.20"]);
    assert_eq!(closed("vlan: 10, inner: 30"), ["out.10.30"]);
    assert_eq!(closed("vlan: 21"), [""; 0]);
}

/// Returns the interfaces, with a macvlan on the second one, a VLAN on that, and a macvlan on a VLAN.
fn stacked() -> Vec<Link> {
    let mut links = links();
    let on = |lower| Link { kind: "macvlan".into(), lower: Some(lower), ..Link::default() };
    let vlan = Some(Vlan { id: 20, protocol: 0x8100, parent: Some(11) });
    // Indexes do not follow the order of the stack.
    links.insert(0, Link { vlan, lower: Some(11), ..link(10, "over.20") });
    links.push(Link { kind: "macvlan".into(), ..Link { lower: Some(2), ..link(11, "over") } });
    links.push(Link { index: 12, name: "tagged".into(), ..on(3) });
    links
}

/// Returns the interfaces whose packets to SIDs are dropped.
fn closed_at(text: &str, links: Vec<Link>) -> Vec<String> {
    let rules = written_with(text, links);
    let names = rules.iter().filter_map(|rule| {
        let name = rule.strip_prefix("5999: to fd00:1::/48 iif ")?;
        Some(name.strip_suffix(" blackhole")?.to_owned())
    });
    names.collect()
}

#[test]
fn an_edge_is_closed_with_everything_that_is_stacked_on_it() {
    let text = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(closed_at(text, stacked()), ["out", "out.10", "over", "over.20", "tagged"]);
    assert_eq!(closed_at("ports: {core: {sids: false}, out: {}}", stacked()), ["core"]);
    // An interface that is in a circle with itself, or without its lower one.
    let mut links = stacked();
    links[0].lower = Some(10);
    links.push(Link { lower: Some(99), ..link(13, "lost") });
    assert_eq!(closed_at(text, links), ["out", "out.10", "over", "tagged"]);
}

#[test]
fn an_edge_is_closed_with_the_bridge_of_an_interface_stacked_on_it() {
    let mut links = stacked();
    let at = links.iter().position(|link| link.name == "over").unwrap();
    links[at].master = Some(6);
    let text = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(
        closed_at(text, links.clone()),
        ["br0", "out", "out.10", "over", "over.20", "tagged"]
    );
    // The ports of a VRF are not a stack.
    links[at].master = Some(4);
    assert_eq!(closed_at(text, links), ["out", "out.10", "over", "over.20", "tagged"]);
}

#[test]
fn an_edge_is_closed_with_the_bridges_that_its_bridge_reaches_over_a_veth() {
    let veth = |index: u32, name: &str, peer: u32, master: Option<u32>| Link {
        kind: "veth".into(),
        peer: Some(peer),
        master,
        ..link(index, name)
    };
    let mut links = links();
    links[1].master = Some(6);
    // By a second bridge, against the order of indexes.
    links.push(Link { kind: "bridge".into(), ..link(20, "br1") });
    links.push(veth(21, "last", 22, None));
    links.push(veth(22, "first", 21, Some(20)));
    links.push(veth(23, "to", 24, Some(20)));
    links.push(veth(24, "from", 23, Some(6)));
    links.push(veth(25, "other", 26, None));
    links.push(veth(26, "end", 25, None));
    let text = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(closed_at(text, links), ["br0", "br1", "from", "last", "out", "out.10", "to"]);
}

#[test]
fn a_tunnel_is_at_the_edge_unless_it_is_a_port() {
    let mut links = links();
    links.push(Link { kind: "vxlan".into(), ..link(20, "vx") });
    links.push(Link { lower: Some(20), kind: "macvlan".into(), ..link(21, "on-vx") });
    links.push(Link { kind: "wireguard".into(), ..link(22, "wg") });
    let at = |text: &str| closed_at(text, links.clone());
    let closed = |text: &str, links: &[Link]| closed_at(text, links.to_vec());
    assert_eq!(at("ports: {core: {}, out: {sids: false}}"), ["on-vx", "out", "out.10", "vx"]);
    let mut with_ppp = links.clone();
    with_ppp.push(Link { kind: "ppp".into(), ..link(23, "ppp0") });
    let edge = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(closed(edge, &with_ppp), ["on-vx", "out", "out.10", "ppp0", "vx"]);
    let file = file("ports: {core: {}, out: {sids: false}, vx: {}}");
    let found = Links::new(links.clone(), true);
    let inside = resolve(&file, &found, &mut Tenants::default()).unwrap();
    assert_eq!(edges(&inside, &links), [2, 3].into(), "a port leads inside");
    let tenant = "source: fd00:1::9\nports: {core: {}, out: {tenant: t}}\ntenants: {t: {routes: {10.0.0.0/8: [\"fd00:2::1\"]}}}";
    assert_eq!(at(tenant), ["on-vx", "out", "out.10", "vx"]);
    assert_eq!(at("ports: {core: {}, out: {}}"), [""; 0], "no edge");
}

#[test]
fn an_edge_is_closed_with_the_interfaces_of_its_open_vswitch() {
    let mut links = links();
    let ovs = |index, name| Link { kind: "openvswitch".into(), ..link(index, name) };
    links.extend([ovs(20, "ovs-system"), ovs(21, "br-int")]);
    let text = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(closed_at(text, links.clone()), ["out", "out.10"]);
    links[1].master = Some(20);
    assert_eq!(closed_at(text, links), ["br-int", "out", "out.10", "ovs-system"]);
}

#[test]
fn an_interface_on_a_tenants_is_outside_of_the_domain() {
    let domain = "sources: [\"fd00:1::/32\"]\n";
    let port = "source: fd00:1::9\nports: {core: {}, out: {tenant: t}}\ntenants: {t: {routes: {10.0.0.0/8: [\"fd00:2::1\"]}}}";
    let tagged = "source: fd00:1::9\nports: {core: {}, out: {}}\ntenants: {t: {attachments: [{port: out, vlan: 10}], \
                  routes: {10.0.0.0/8: [\"fd00:2::1\"]}}}";
    assert_eq!(closed_at(port, stacked()), ["out", "out.10", "over", "over.20", "tagged"]);
    // A VLAN of a tenant has other frames than its port.
    assert_eq!(closed_at(tagged, stacked()), ["out.10", "tagged"]);
    let both = port.replace("{routes", "{attachments: [{port: out, vlan: 10}], routes");
    assert_eq!(closed_at(&both, stacked()), ["out", "out.10", "over", "over.20", "tagged"]);
    let frames =
        port.replace("{routes: {10.0.0.0/8: [\"fd00:2::1\"]}}", "{frames: [\"fd00:2::1\"]}");
    assert_eq!(closed_at(&frames, stacked()), ["out", "out.10", "over", "over.20", "tagged"]);
    let spoofed = |text: &str, name: &str| {
        let rule = format!("5998: from fd00:1::/32 iif {name} blackhole");
        written_with(&format!("{domain}{text}"), stacked()).contains(&rule)
    };
    assert!(spoofed(port, "over") && spoofed(port, "out.10") && !spoofed(port, "core"));
    assert!(spoofed(tagged, "tagged") && !spoofed(tagged, "over"));
    // Sources of the tenant do not hold at a MAC address that the program does not inspect.
    let own = port.replace("{routes", "{sources: [\"fd00:1:1::/48\"], routes");
    assert!(spoofed(&own, "over") && spoofed(&own, "out.10"));
    let bridged = port.replace("out:", "bridged:");
    assert_eq!(closed_at(&bridged, stacked()), ["br0", "bridged"]);
}

/// A tenant that stands for a table of the kernel does not open a VLAN to the port's tenant.
#[test]
fn an_imported_vlan_on_a_tenants_port_stays_closed() {
    let port = "source: fd00:1::9\nports: {core: {}, out: {tenant: t}}\ntenants: {t: {routes: {10.0.0.0/8: [\"fd00:2::1\"]}}}";
    let mut forwarding = state(port);
    let over = |forwarding: &Forwarding| over_tenants(forwarding, &links());
    assert_eq!(over(&forwarding), [3].into());
    let tags = Tags { outer: 10, inner: 0 };
    forwarding.attachments.insert(Attachment { port: 2, tags }, Owner::Tenant(TABLE_TENANTS));
    assert_eq!(over(&forwarding), [3].into());
}

#[test]
fn an_edge_is_closed_with_the_ring_that_it_is_in() {
    let mut links = links();
    links.push(Link { kind: "hsr".into(), slaves: vec![7, 2], ..link(20, "ring") });
    links.push(Link { lower: Some(20), kind: "macvlan".into(), ..link(21, "on-ring") });
    let text = "ports: {core: {}, out: {sids: false}}";
    assert_eq!(closed_at(text, links.clone()), ["on-ring", "out", "out.10", "ring"]);
    let state = resolve(&file(text), &Links::new(links.clone(), true), &mut Tenants::default());
    assert_eq!(
        state.unwrap().tunnels,
        [(20, "ring".to_owned())].into(),
        "the frames' tags hide addresses"
    );
    let tenant = "sources: [\"fd00:1::/32\"]\nsource: fd00:1::9\nports: {core: {}, out: {tenant: t}}\ntenants: {t: {table: 100}}";
    let spoofed = "5998: from fd00:1::/32 iif ring blackhole".to_owned();
    assert!(written_with(tenant, links).contains(&spoofed));
}

#[test]
fn sources_open_the_locators_for_themselves_and_this_node() {
    assert_eq!(
        written("sources: [\"fd00:1::/32\"]\nports: {core: {}, out: {}}"),
        [
            "6003: from fd00:1::/32 to fd00:1::/48 254",
            "6003: to fd00:1::/48 iif lo 254",
            "6004: to fd00:1::/48 blackhole",
        ]
    );
}

#[test]
fn the_domains_sources_are_spoofed_at_an_edge_and_by_tenants() {
    let spoofed = |text: &str| {
        let written = written(&format!("sources: [\"fd00:1::/32\"]\nsource: fd00:1::9\n{text}"));
        let is_one = |line: &String| line.starts_with("5997") || line.starts_with("5998");
        written.into_iter().filter(is_one).collect::<Vec<_>>()
    };
    let on = |name: &str| format!("5998: from fd00:1::/32 iif {name} blackhole");
    assert_eq!(spoofed("ports: {core: {}, out: {sids: false}}"), [on("out"), on("out.10")]);
    // The outer packets of a tenant are looked up as if received on this interface.
    let outer = |name: &str| format!("5997: from fd00:1::9/128 iif {name} goto 5999");
    let routes = "routes: {10.0.0.0/8: [\"fd00:2::1\"]}";
    let tagged = format!("tenants: {{t: {{attachments: [{{port: out, vlan: 10}}], {routes}}}}}");
    assert_eq!(
        spoofed(&format!("ports: {{core: {{}}, out: {{sids: false}}}}\n{tagged}")),
        [outer("out.10"), on("out"), on("out.10")]
    );
    assert_eq!(
        spoofed(&format!("ports: {{core: {{}}, out: {{}}}}\n{tagged}")),
        [outer("out.10"), on("out.10")]
    );
    let port = "ports: {core: {}, out: {tenant: t}}\ntenants: {t: {";
    let both = [on("out"), on("out.10")];
    assert_eq!(spoofed(&format!("{port}{routes}}}}}")), [&[outer("out")][..], &both].concat());
    assert_eq!(spoofed(&format!("{port}table: 100}}}}")), both, "encapsulates nothing");
    let frames = "ports: {core: {}, out: {tenant: t}}\ntenants: {t: {frames: [\"fd00:2::1\"]}}";
    assert_eq!(spoofed(frames), both);
    // A tenant's own sources are its own on its own interface.
    let with_own = |own: &str| spoofed(&format!("{port}sources: [\"{own}\"], {routes}}}}}"));
    let exempt = "5997: from fd00:1:1::/48 iif out goto 5999".to_owned();
    assert_eq!(with_own("fd00:1:1::/48"), [&[outer("out"), exempt][..], &both].concat());
    assert_eq!(with_own("fd00:3::/48"), [&[outer("out")][..], &both].concat());
    assert_eq!(with_own("10.1.0.0/24"), [&[outer("out")][..], &both].concat());
    assert_eq!(with_own("fd00::/16"), [on("out.10")]);
    // Rules have no effect on ports of a bridge or a VRF, but on a bridge without a port in the domain.
    let bridged = port.replace("out", "bridged");
    assert_eq!(spoofed(&format!("{bridged}{routes}}}}}")), [on("br0")]);
    let with_own = format!("{bridged}sources: [\"fd00:1:1::/48\"], {routes}}}}}");
    assert_eq!(spoofed(&with_own), ["5997: from fd00:1:1::/48 iif br0 goto 5999", &on("br0")]);
    let other = Link { master: Some(6), ..link(8, "other") };
    let text = format!("sources: [\"fd00:1::/32\"]\nsource: fd00:1::9\n{bridged}{routes}}}}}");
    let lines = written_with(&text, links().into_iter().chain([other]).collect());
    assert!(lines.iter().all(|line| !line.starts_with("5998")), "{lines:?}");
}

#[test]
fn no_edge_is_hidden_by_a_bridge() {
    let file = file("ports: {core: {}, bridged: {sids: false}}");
    let error = resolve(&file, &Links::new(links(), true), &mut Tenants::default()).unwrap_err();
    assert!(error[0].to_string().contains("because its packets arrive on `br0`"), "{}", error[0]);
}

/// Ports that a bridge took after the file was applied: the bridge is closed.
#[test]
fn an_edge_that_a_bridge_takes_later_is_closed_with_the_bridge() {
    let file = file("ports: {core: {}, bridged: {sids: false}}");
    let links = Links::new(links(), true).lacking_functions();
    let found = resolve(&file, &links, &mut Tenants::default()).unwrap();
    let kernel = Kernel { links: links.links, ..Kernel::default() };
    let on = |rule: &InterfaceRule| rule.interface.clone().unwrap();
    assert_eq!(rules(&found, &kernel).iter().map(on).collect::<Vec<_>>(), ["br0", "bridged"]);
}

#[test]
fn a_domain_without_an_edge_is_warned_of() {
    let kernel = Kernel { links: links(), ..Kernel::default() };
    let warned = |text: &str| warnings(&state(text), &kernel, false);
    let open = warned("ports: {core: {}, out: {}}");
    assert!(open.len() == 1 && open[0].contains("every port reaches every SID"), "{open:?}");
    assert_eq!(warned("ports: {core: {}, out: {sids: false}}"), [""; 0]);
    assert_eq!(warned("sources: [\"fd00:1::/32\"]\nports: {core: {}}"), [""; 0]);
    let trunk = "ports: {core: {}, out: {}}\ntenants: {t: {table: 9, attachments: [{port: out, vlan: 10}]}}";
    assert!(warned(trunk).concat().contains("every port reaches every SID"), "untagged frames do");
    let vrf = warned("ports: {core: {}, inner: {}}");
    assert!(vrf.len() == 1 && vrf[0].contains("in the VRF `red`"), "{vrf:?}");
    let mut links = stacked();
    links.iter_mut().filter(|link| link.name == "over").for_each(|link| link.master = Some(4));
    let kernel = Kernel { links, ..Kernel::default() };
    let stacked = warnings(&state("ports: {core: {}, out: {sids: false}}"), &kernel, false);
    assert!(stacked.len() == 1 && stacked[0].contains("in the VRF `red`"), "{stacked:?}");
}

#[test]
fn an_edge_or_a_tenant_whose_kernel_takes_srhs_is_warned_of() {
    let mut links = links();
    links.iter_mut().for_each(|link| link.takes_srh = true);
    let kernel = Kernel { links, ..Kernel::default() };
    let warned = |text: &str| -> Vec<String> {
        let found = warnings(&state(text), &kernel, false);
        let of_it = found.into_iter().filter(|text| text.contains("the kernel takes SRHs"));
        of_it.map(|text| text.split_once(" from ").unwrap().1.to_owned()).collect()
    };
    let about = |of: &str, name: &str| {
        format!("{of} `{name}`: `sysctl -w net.ipv6.conf.{name}.seg6_enabled=0`")
    };
    assert_eq!(
        warned("ports: {core: {}, out: {sids: false}}"),
        [about("the edge", "out"), about("the edge", "out.10")]
    );
    assert_eq!(
        warned("ports: {core: {}, out: {tenant: t}}\ntenants: {t: {table: 9}}"),
        [about("the tenant's", "out"), about("the tenant's", "out.10")]
    );
}

#[test]
fn a_tenants_vrf_without_a_default_route_is_refused() {
    let tenant = |more: &str| {
        file(&format!(
            "ports: {{core: {{}}, inner: {{tenant: t}}}}\ntenants: {{t: {{vrf: red{more}}}}}"
        ))
    };
    let by_number = file("ports: {core: {}}\ntenants: {t: {table: 100}}");
    let mut kernel = Kernel { links: links(), ..Kernel::default() };
    for file in [&tenant(""), &by_number] {
        let said = check_tables(file, &kernel).unwrap_err().to_string();
        assert!(said.contains("ip -6 route add unreachable default") && said.contains("table 100"));
    }
    check_tables(&tenant(", falls_through: true"), &kernel).unwrap();
    let everything = IpNet::V6(Ipv6Net::default());
    let end = Route { table: 100, kind: RouteKind::Unreachable, ..Route::new(everything, vec![]) };
    // A default route of another table does not end lookups in this one.
    kernel.routes = vec![Route { table: 101, ..end.clone() }];
    assert!(check_tables(&tenant(""), &kernel).is_err());
    kernel.routes = vec![end];
    check_tables(&tenant(""), &kernel).unwrap();
}

#[test]
fn a_kernels_end_dx2_to_a_port_with_tags_of_tenants_is_warned_of() {
    let trunk = "ports: {core: {sids: false}, out: {}}\ntenants: {t: {table: 9, attachments: [{port: out, vlan: 10}]}}";
    let kernel = Kernel { links: links(), ..Kernel::default() };
    for (port, warned) in [(1, 0), (2, 1)] {
        let mut found = state(trunk);
        let endpoint = Endpoint::new(Behavior::EndDx2 { port });
        found.sids.insert("fd00:7::1/128".parse().unwrap(), endpoint);
        let found = warnings(&found, &kernel, false);
        let of_it = found.iter().filter(|text| text.contains("sends frames with any tag to `out`"));
        assert_eq!(of_it.count(), warned, "{found:?}");
    }
}
