use netlink::Vlan;
use srv6::{CsidLengths, Form};

use super::*;
use crate::forwarding::Behavior;

fn link(index: u32, name: &str) -> Link {
    let mac = Some(Mac([2, 0, 0, 0, 0, index as u8]));
    Link { index, name: name.into(), mac, ..Link::default() }
}

fn vlan(index: u32, name: &str, id: u16, protocol: u16, parent: u32) -> Link {
    let vlan = Some(Vlan { id, protocol, parent: Some(parent) });
    Link { vlan, lower: Some(parent), ..link(index, name) }
}

fn machine() -> Links {
    Links::new(links(), true)
}

fn links() -> Vec<Link> {
    vec![
        Link { mac: Some(Mac([0; 6])), ..link(1, "lo") },
        link(2, "eth0"),
        link(3, "eth1"),
        link(4, "eth2"),
        Link { vrf_table: Some(100), kind: "vrf".into(), ..link(5, "red") },
        vlan(6, "eth1.10", 10, DOT1Q, 3),
        vlan(7, "eth2.20", 20, DOT1AD, 4),
        vlan(8, "eth2.20.30", 30, DOT1Q, 7),
        vlan(9, "lo.5", 5, DOT1Q, 1),
        vlan(10, "eth1.10.11", 11, DOT1Q, 6),
    ]
}

const EXAMPLE: &str = include_str!("../../../../labs/dataplane/tenants.yaml");

fn file(text: &str) -> File {
    dataplane_file::parse("dataplane.yaml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn sid(text: &str) -> ipnet::Ipv6Net {
    text.parse::<Ipv6Addr>().unwrap().into()
}

#[test]
fn a_port_may_have_an_exit() {
    let resolved = |text: &str| resolve(&file(text), &machine(), &mut Tenants::default());
    let forwarding = resolved("ports: {eth0: {exit: eth1}, eth2: {}}\n").unwrap();
    let exits: Vec<_> = forwarding.ports.values().map(|port| port.exit).collect();
    assert_eq!(exits, [Some(3), None]);
    let problems = resolved("ports:\n  eth0: {exit: eth9}\n").unwrap_err();
    let text = problems[0].to_string();
    assert!(text.contains("line 2: no interface `eth9`"), "{text}");
}

#[test]
fn every_name_is_resolved() {
    let mut tenants = Tenants::default();
    let forwarding = resolve(&file(EXAMPLE), &machine(), &mut tenants).unwrap();
    assert_eq!((tenants.number("blue"), tenants.number("wire")), (Some(65), Some(66)));
    assert_eq!(tenants.name(66), Some("wire"));
    assert_eq!(forwarding.source.to_string(), "fd00:0:1::1");

    let named = |tenant, name: &str| PolicyId::Named(tenant, name.into());
    let owners: Vec<_> = forwarding.ports.values().map(|port| port.owner.clone()).collect();
    let frames = Owner::Frames(named(Some(66), "to-osaka"));
    assert_eq!(owners, [Owner::Nobody, Owner::Tenant(65), frames]);
    let closed: Vec<bool> = forwarding.ports.values().map(|port| port.closed).collect();
    assert_eq!(closed, [false, true, true]);
    let attachments: Vec<_> = forwarding
        .attachments
        .iter()
        .map(|(key, owner)| (key.port, key.tags.outer, key.tags.inner, owner.clone()))
        .collect();
    assert_eq!(attachments, [(3, 10, 0, Owner::Tenant(65)), (3, 10, 20, Owner::Tenant(65))]);

    // Only those with tags that the program can write.
    let uppers: Vec<_> = forwarding
        .uppers
        .iter()
        .map(|(index, upper)| (*index, upper.port, upper.tags.outer, upper.tags.inner))
        .collect();
    assert_eq!(uppers, [(6, 3, 10, 0), (8, 4, 20, 30)]);

    let prefix: IpNet = "10.2.0.0/16".parse().unwrap();
    assert_eq!(forwarding.prefixes[&(65, prefix)], PolicyId::Of(Some(65), prefix));
    assert_eq!(forwarding.prefixes.len(), 4);
    let forms: Vec<Form> = ["10.2.0.0/16", "2001:db8::/32"]
        .iter()
        .map(|prefix| forwarding.policies[&PolicyId::Of(Some(65), prefix.parse().unwrap())].form)
        .collect();
    assert_eq!(forms, [Form::EncapsRed, Form::Encaps]);
    // The same name in two tenants, and for a SID, stands for three policies: a policy belongs to
    // one tenant.
    for tenant in [None, Some(65), Some(66)] {
        assert!(forwarding.policies.contains_key(&named(tenant, "to-osaka")), "{tenant:?}");
    }

    let endpoint = |text: &str| &forwarding.sids[&sid(text)];
    let dt4 = endpoint("fd00:0:1:d4::");
    let table = LookUp { table: 100, vrf: Some(5) };
    assert_eq!(dt4.behavior, Behavior::EndDt4 { table });
    let dt6 = endpoint("fd00:0:1:d6::");
    let table = LookUp { table: 254, vrf: None };
    assert_eq!(dt6.behavior, Behavior::EndDt6 { table });
    assert_eq!(endpoint("fd00:0:1:d7::").tags, Tags { outer: 10, inner: 20 });
    assert_eq!(endpoint("fd00:0:1:d2::").behavior, Behavior::EndDx2 { port: 4 });
    let b6 = endpoint("fd00:0:1:b6::");
    let policy = named(None, "to-osaka");
    assert_eq!(forwarding.policies[&policy].lists[0].segments.0.len(), 2);
    assert_eq!(b6.behavior, Behavior::EndB6Encaps { policy });
    let next_csid = forwarding.sids[&"fd00:1:1::/48".parse().unwrap()].flavors.next_csid;
    assert_eq!(next_csid, Some(CsidLengths { block_bits: 32, node_function_bits: 16 }));
}

#[test]
fn tenants_keep_their_numbers() {
    let mut tenants = Tenants::default();
    let mut numbers = |names: &str| {
        let file = file(&format!("ports: {{eth0: {{}}}}\ntenants: {{{names}}}\n"));
        resolve(&file, &machine(), &mut tenants).unwrap();
        ["a", "b", "c", "d"].map(|name| tenants.number(name))
    };
    assert_eq!(numbers("b: {}, d: {}"), [None, Some(65), None, Some(66)]);
    assert_eq!(numbers("a: {}, b: {}, d: {}"), [Some(67), Some(65), None, Some(66)]);
    // Tenants that are removed for a while keep their numbers, and no other tenant gets them.
    assert_eq!(numbers("c: {}"), [Some(67), Some(65), Some(68), Some(66)]);
}

#[test]
fn everything_that_the_machine_lacks_is_reported_at_once() {
    let text = "ports:\n  eth9: {}\n  veth-tokyo: {}\n  lo: {}\n  eth1.10: {}\n  red: {}\n  eth0: {}\n\
                tenants:\n  a: {vrf: blue}\n  b: {vrf: eth0}\n  c: {vrf: red}\n\
                locators: [fd00:0:1::/48]\n\
                sids:\n  fd00:0:1:1::: {behavior: End.DT4, vrf: green}\n  \
                fd00:0:1:2::: {behavior: End.DT4, tenant: a}\n";
    let mut tenants = Tenants::default();
    let problems = resolve(&file(text), &machine(), &mut tenants).unwrap_err();
    let mut lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.sort();
    let starts = [
        "line 10: no VRF `eth0`: create it with `ip link add eth0 type vrf",
        "line 14: no VRF `green`",
        "line 2: no interface `eth9`: did you mean `eth0`?",
        "line 3: no interface `veth-tokyo`: `ip link` lists",
        "line 4: `lo` carries no Ethernet frames",
        "line 5: `eth1.10` is VLAN 10 of `eth1`: write that interface under `ports`",
        "line 6: `red` is a VRF: write the interfaces in it",
        "line 9: no VRF `blue`",
    ];
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    // A rejected file changes nothing.
    assert_eq!(tenants, Tenants::default());
}

#[test]
fn a_tenants_number_is_not_reused_while_it_is_referenced() {
    let text = |names: &[&str]| {
        let tenants: Vec<String> = names.iter().map(|name| format!("  {name}: {{}}\n")).collect();
        file(&format!("ports: {{eth0: {{}}}}\ntenants:\n{}", tenants.concat()))
    };
    let first = TABLE_TENANTS + 1;
    let mut tenants = Tenants::default();
    // Numbers in use by an earlier daemon.
    tenants.spare([first, first + 2].into());
    let both = text(&["red", "green"]);
    resolve(&both, &machine(), &mut tenants).unwrap();
    assert_eq!(
        (tenants.number("green"), tenants.number("red")),
        (Some(first + 1), Some(first + 3))
    );
    // Their own numbers are in use now; those of the earlier daemon are not any more.
    tenants.spare([first + 1, first + 3].into());
    let other = text(&["green", "amber"]);
    resolve(&other, &machine(), &mut tenants).unwrap();
    assert_eq!(tenants.number("amber"), Some(first));
    assert_eq!(tenants.number("green"), Some(first + 1));
    assert_eq!(tenants.number("red"), Some(first + 3), "until nothing leads to it");
    tenants.keep_only(&other);
    assert_eq!(tenants.number("red"), None);
}

#[test]
fn a_kernel_that_finds_no_table_by_its_number_needs_a_vrf() {
    let text = r#"
locators: ["fd00:1::/32"]
ports: { eth0: {} }
sids:
  "fd00:1::1": { behavior: End.DT4, table: 100 }
  "fd00:1::2": { behavior: End.DT6, table: 254 }
"#;
    let older = Links::new(links(), false);
    let problems = resolve(&file(text), &older, &mut Tenants::default()).unwrap_err();
    assert_eq!(problems, [Unresolved::NeedsVrf { line: 6, table: 254 }]);
    assert!(problems[0].to_string().contains("Linux 6.5"), "{}", problems[0]);
    assert!(resolve(&file(text), &machine(), &mut Tenants::default()).is_ok());
}
#[test]
fn a_port_in_a_vrf_reaches_no_sid() {
    let mut links = links();
    links[1].master = Some(5);
    let machine = Links::new(links, true);
    let file = file(
        "ports: { eth0: {}, eth1: {} }
",
    );
    let forwarding = resolve(&file, &machine, &mut Tenants::default()).unwrap();
    let closed: Vec<bool> = forwarding.ports.values().map(|port| port.closed).collect();
    assert_eq!(closed, [true, false]);
}

/// A network card has no senders on this machine, and an interface without a kind is one.
#[test]
fn ports_of_tenants_and_of_the_edge_are_guarded() {
    let text = "locators: [\"fd00:1::/48\"]\nports: {eth0: {}, eth1: {sids: false}, eth2: {}}\n";
    let guarded = |text: &str, change: &dyn Fn(&mut Vec<Link>)| {
        let mut links = links();
        links[1..4].iter_mut().for_each(|link| link.kind = "veth".into());
        change(&mut links);
        let machine = Links::new(links, true).lacking_functions();
        let state = resolve(&file(text), &machine, &mut Tenants::default()).unwrap();
        state.guarded_ports.into_iter().collect::<Vec<u32>>()
    };
    assert_eq!(guarded(text, &|_| ()), [3]);
    assert_eq!(guarded(text, &|links| links[2].kind = String::new()), [0; 0]);
    assert_eq!(guarded(text, &|links| links[2].master = Some(5)), [3], "in a VRF");
    let bridge = Link { kind: "bridge".into(), ..link(20, "bridge") };
    let in_bridge = |links: &mut Vec<Link>| {
        links.push(bridge.clone());
        links[2].master = Some(20);
    };
    assert_eq!(guarded(text, &in_bridge), [0; 0]);
    let with_sources = format!("sources: [\"fd00::/16\"]\n{text}");
    assert_eq!(guarded(&with_sources, &|_| ()), [2, 3, 4]);
    let of_tenant =
        "ports: {eth0: {}, eth1: {}}\ntenants: {blue: {attachments: [{port: eth0, vlan: 9}]}}\n";
    assert_eq!(guarded(of_tenant, &|_| ()), [2]);
}

/// The kernel accepts frames of a VLAN to the MAC addresses of its interface, of the interface below
/// that, and of the port.
#[test]
fn a_vlan_interface_has_mac_addresses_of_its_own() {
    let mut links = machine().links;
    for (name, mac) in [("eth1.10", 0xa1), ("eth2.20", 0xa2), ("eth2.20.30", 0xa3)] {
        let link = links.iter_mut().find(|link| link.name == name).unwrap();
        link.mac = Some(Mac([2, 0, 0, 0, 0, mac]));
    }
    let port = links.iter().find(|link| link.index == 4).unwrap().mac;
    links.push(Link { mac: port, ..vlan(20, "eth2.40", 40, DOT1AD, 4) });
    links.push(Link { mac: port, ..vlan(21, "eth2.20.41", 41, DOT1AD, 7) });
    let found = resolve(&file(EXAMPLE), &Links::new(links, true), &mut Tenants::default()).unwrap();
    let vlans: Vec<_> = found
        .vlans
        .iter()
        .filter(|(_, vlan)| vlan.frames.port == 4)
        .map(|(index, vlan)| {
            (*index, vlan.frames.tags, vlan.macs.iter().map(|mac| mac.0[5]).collect())
        })
        .collect();
    let tags = |outer, inner| Tags { outer, inner };
    assert_eq!(
        vlans,
        [
            (7, tags(20, 0), vec![0xa2]),
            (8, tags(20, 30), vec![0xa3, 0xa2]),
            (20, tags(40, 0), vec![]),
        ]
    );
    assert_eq!(found.vlans[&10].frames.tags, tags(10, 11), "two tags of 802.1Q");
}

#[test]
fn vlans_of_the_domain_have_interfaces() {
    let resolved = |text: &str, links: Vec<Link>| {
        resolve(&file(text), &Links::new(links, true), &mut Tenants::default())
    };
    let text =
        "ports:\n  eth1: {sids: false, vlans: [10]}\n  eth2: {vlans: [{vlan: 20, inner: 30}]}\n";
    let up = || {
        let up = |link| Link { up: true, ..link };
        links().into_iter().map(up).collect::<Vec<_>>()
    };
    let forwarding = resolved(text, up()).unwrap();
    let one = forwarding.domain_vlans[&6].clone();
    assert_eq!((one.frames.port, one.frames.tags), (3, Tags { outer: 10, inner: 0 }));
    assert_eq!((&*one.name, one.mac, one.closed), ("eth1.10", Mac([2, 0, 0, 0, 0, 6]), false));
    assert_eq!(forwarding.domain_vlans[&8].frames.tags, Tags { outer: 20, inner: 30 });
    assert_eq!(forwarding.domain_vlans.len(), 2);
    assert_eq!(forwarding.domain_tags(4), [Tags { outer: 20, inner: 30 }]);

    let mut in_vrf = up();
    in_vrf[5].master = Some(5);
    assert!(resolved(text, in_vrf).unwrap().domain_vlans[&6].closed);
    assert!(resolved(text, links()).unwrap().domain_vlans[&6].closed, "it is down");

    for (ports, line, help) in [
        (
            "eth0: {vlans: [5]}",
            "`eth0` has no interface for VLAN 5",
            "name eth0.5 up type vlan id 5`",
        ),
        // The kernel's interface has another protocol.
        ("eth2: {vlans: [20]}", "`eth2` has no interface for VLAN 20", "type vlan id 20`"),
        (
            "eth1: {vlans: [{vlan: 10, inner: 11}]}",
            "no interface for VLAN 11 within VLAN 10 (802.1ad)",
            "link eth1.10 name eth1.10.11 up type vlan id 11`",
        ),
    ] {
        let text = format!("ports:\n  {ports}\n");
        let problems = resolved(&text, links()).unwrap_err();
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let problem = problem.to_string();
        assert!(problem.starts_with("line 2: "), "{problem}");
        assert!(problem.contains(line) && problem.contains(help), "{problem}");
        let later = Links::new(links(), true).lacking_functions();
        let state = resolve(&file(&text), &later, &mut Tenants::default()).unwrap();
        assert!(state.domain_vlans.is_empty(), "it has gone later");
    }
}

/// A tenant that owns the untagged frames of a port sends any tag.
#[test]
fn a_function_is_not_reached_through_frames_of_a_tenant() {
    let sid = "sids:\n  \"fd00:1::f\": {behavior: End.AD, to: eth1.10, back: eth1.10}\n";
    let text = |port: &str, more: &str| {
        let tenants = format!("tenants: {{blue: {{table: 9, attachments: [{more}]}}}}\n");
        format!("locators: [\"fd00:1::/48\"]\nports: {{eth1: {port}}}\n{tenants}{sid}")
    };
    let resolved = |text: &str| resolve(&file(text), &machine(), &mut Tenants::default());
    assert!(resolved(&text("{}", "{port: eth1, vlan: 11}")).is_ok());
    let problems = resolved(&text("{vlans: [10]}", "")).unwrap_err();
    assert!(problems[0].to_string().contains("`eth1.10` is in the SR domain"), "{problems:?}");
    for (port, more) in [("{tenant: blue}", ""), ("{}", "{port: eth1, vlan: 10}")] {
        let problems = resolved(&text(port, more)).unwrap_err();
        let problem = problems[0].to_string();
        assert!(problem.starts_with("line 5: frames of `eth1.10` belong to a tenant"), "{problem}");
    }
    // Nor through an interface that lies on them: with other tags, protocols, or addresses.
    let mut stacked = links();
    stacked.extend([
        vlan(90, "eth1.200", 200, DOT1AD, 3),
        vlan(91, "eth1.200.10", 10, DOT1Q, 90),
        Link { kind: "macvlan".into(), lower: Some(3), ..link(92, "over") },
        vlan(93, "over.200", 200, DOT1Q, 92),
        Link { kind: "bridge".into(), ..link(94, "br0") },
    ]);
    let at = |name: &str, port: &str, more: &str| {
        let machine = Links::new(stacked.clone(), true);
        let text = text(port, more).replace("eth1.10,", &format!("{name},"));
        resolve(
            &file(&text.replace("eth1.10}", &format!("{name}}}"))),
            &machine,
            &mut Tenants::default(),
        )
    };
    let tagged = "{port: eth1, vlan: 200}";
    for name in ["eth1.200", "eth1.200.10", "over"] {
        assert!(at(name, "{}", "{port: eth1, vlan: 11}").is_ok(), "{name}");
        let problems = at(name, "{tenant: blue}", "").unwrap_err();
        assert!(matches!(problems[..], [Unresolved::IsTenants { .. }, ..]), "{problems:?}");
        assert_eq!(at(name, "{}", tagged).is_ok(), name == "over");
        assert_eq!(at(name, "{sids: false}", "").is_ok(), name != "over");
    }
    assert!(at("over.200", "{}", "").is_ok() && at("over.200", "{}", tagged).is_err());
    // The tags of a tenant's frames are compared in order.
    for (tags, is_apart) in [
        ("vlan: 10", true),
        ("vlan: 200, inner: 11", true),
        ("vlan: 200, inner: 10", false),
        ("vlan: 200", false),
    ] {
        let attachment = format!("{{port: eth1, {tags}}}");
        assert_eq!(at("eth1.200.10", "{}", &attachment).is_ok(), is_apart, "{tags}");
    }
    assert!(at("eth1.200", "{}", "{port: eth1, vlan: 200, inner: 11}").is_err());
    // Nor through a bridge that has the tenant's port.
    assert!(at("br0", "{tenant: blue}", "").is_ok());
    stacked.iter_mut().filter(|link| link.name == "eth1").for_each(|link| link.master = Some(94));
    let machine = Links::new(stacked.clone(), true);
    let bridged = text("{tenant: blue}", "").replace("eth1.10", "br0");
    let problems = resolve(&file(&bridged), &machine, &mut Tenants::default()).unwrap_err();
    assert!(matches!(problems[..], [Unresolved::IsTenants { .. }, ..]), "{problems:?}");
    // A function that turns its interface into one of another kind stops nothing else.
    let without_mac = || {
        let mut links = links();
        links.iter_mut().filter(|link| link.name == "eth1.10").for_each(|link| link.mac = None);
        links
    };
    for (text, links) in [(text("{vlans: [10]}", ""), links()), (text("{}", ""), without_mac())] {
        let later = Links::new(links, true).lacking_functions();
        let state = resolve(&file(&text), &later, &mut Tenants::default()).unwrap();
        assert!(state.proxies().all(|proxy| proxy.to.index.is_none()), "{text}");
        assert_eq!(state.proxies().count(), 1);
    }
}

/// Also after `apply`, when the file has been accepted. VLANs of an edge port may have other uses.
#[test]
fn a_function_is_not_reached_through_a_bridge_or_a_ring_with_an_edge_port() {
    let mut all = links();
    all.extend([
        vlan(90, "eth1.200", 200, DOT1AD, 3),
        Link { kind: "macvlan".into(), lower: Some(3), ..link(92, "over") },
        Link { kind: "bridge".into(), ..link(94, "br0") },
    ]);
    let bridged = |name: &str| {
        let mut links = all.clone();
        links.iter_mut().filter(|link| link.name == name).for_each(|link| link.master = Some(94));
        links
    };
    let reaches = |name: &str, links: Vec<Link>| {
        let text = format!(
            "locators: [\"fd00:1::/48\"]\nports: {{eth1: {{sids: false}}}}\n\
             sids: {{\"fd00:1::f\": {{behavior: End.AM, to: {name}, back: {name}}}}}\n"
        );
        let machine = Links::new(links, true).lacking_functions();
        let state = resolve(&file(&text), &machine, &mut Tenants::default()).unwrap();
        state.proxies().all(|proxy| proxy.to.index.is_some())
    };
    assert!(!reaches("br0", bridged("eth1")));
    assert!(!reaches("br0", bridged("over")));
    assert!(!reaches("over", bridged("")));
    assert!(reaches("eth1.200", bridged("")));
    assert!(reaches("br0", bridged("eth1.200")));
    all.push(Link { kind: "hsr".into(), slaves: vec![3], ..link(95, "ring") });
    assert!(!reaches("ring", all.clone()));
    // Hosts at the edge can send packets through a tunnel of this node.
    all.push(Link { kind: "vxlan".into(), ..link(96, "vx") });
    all.push(vlan(97, "vx.7", 7, DOT1Q, 96));
    assert!(!reaches("vx", all.clone()) && !reaches("vx.7", all.clone()));
    // So may kinds that are not known, such as an interface of Open vSwitch.
    all.push(Link { kind: "openvswitch".into(), ..link(98, "ovs0") });
    assert!(!reaches("ovs0", all.clone()));
    let inside = "locators: [\"fd00:1::/48\"]\nports: {eth1: {}}\n\
                  sids: {\"fd00:1::f\": {behavior: End.AM, to: vx, back: vx}}\n";
    let state = resolve(&file(inside), &Links::new(all, true), &mut Tenants::default()).unwrap();
    assert!(state.proxies().all(|proxy| proxy.to.index == Some(96)));
}
