//! Rules that close ports, and warnings.

use netlink::{Mac, RouteKind, Vlan};

use super::*;
use crate::xdp::{Links, Tenants, resolve};

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
        Link { vlan, ..link(3, "out.10") },
        Link { kind: "vrf".into(), vrf_table: Some(100), ..link(4, "red") },
        Link { master: Some(4), ..link(5, "inner") },
        Link { kind: "bridge".into(), ..link(6, "br0") },
        Link { master: Some(6), ..link(7, "bridged") },
    ]
}

fn file(text: &str) -> File {
    let head = "locators: [\"fd00:1::/48\"]\nsids: {\"fd00:1::1\": End}\n";
    let text = format!("{head}{text}");
    model::dataplane::parse("file", &text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn state(text: &str) -> Forwarding {
    resolve(&file(text), &Links::new(links(), true), &mut Tenants::default()).unwrap()
}

/// Returns the rules in the notation of `ip -6 rule`.
fn written(text: &str) -> Vec<String> {
    let rules = rules(&state(text), &Kernel { links: links(), ..Kernel::default() }, true);
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
    rules.iter().map(line).collect()
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
    let outer = |name: &str| format!("5997: from fd00:1::9/128 iif {name} goto 6000");
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
    assert_eq!(spoofed(&format!("{port}{routes}}}}}")), [outer("out"), on("out")]);
    assert_eq!(spoofed(&format!("{port}table: 100}}}}")), [on("out")], "encapsulates nothing");
    let frames = "ports: {core: {}, out: {tenant: t}}\ntenants: {t: {frames: [\"fd00:2::1\"]}}";
    assert_eq!(spoofed(frames), [on("out")]);
    // The program checks these sources; rules have no effect in a bridge or a VRF.
    let own = format!("{port}sources: [\"fd00:1:1::/48\"], {routes}}}}}");
    assert_eq!(spoofed(&own), [""; 0]);
    let bridged = port.replace("out", "bridged");
    assert_eq!(spoofed(&format!("{bridged}{routes}}}}}")), [""; 0]);
}

#[test]
fn no_edge_is_hidden_by_a_bridge() {
    let file = file("ports: {core: {}, bridged: {sids: false}}");
    let error = resolve(&file, &Links::new(links(), true), &mut Tenants::default()).unwrap_err();
    assert!(error[0].to_string().contains("whose packets come in by `br0`"), "{}", error[0]);
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
    assert!(vrf.len() == 1 && vrf[0].contains("by the VRF `red`"), "{vrf:?}");
}

#[test]
fn an_edge_whose_kernel_takes_srhs_is_warned_of() {
    let mut links = links();
    links[1].takes_srh = true;
    let kernel = Kernel { links, ..Kernel::default() };
    let found = warnings(&state("ports: {core: {}, out: {sids: false}}"), &kernel, false);
    assert!(found.len() == 1 && found[0].contains("net.ipv6.conf.out.seg6_enabled=0"), "{found:?}");
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
