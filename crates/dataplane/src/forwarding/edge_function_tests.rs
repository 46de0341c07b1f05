//! Rules on the interfaces to service functions, and beside them.

use super::*;

/// Also one that does not exist at present. The rules are for IPv4 and IPv6.
#[test]
fn the_kernel_forwards_nothing_from_functions() {
    let text = "ports: {core: {}}\nsids:\n  \"fd00:1::1\": End\n  \
                \"fd00:1::f\": {behavior: End.AD, to: out, back: later}\n";
    let text = format!("locators: [\"fd00:1::/48\"]\n{text}");
    let file = dataplane_file::parse("file", &text).unwrap_or_else(|problems| panic!("{problems}"));
    let machine = Links::new(links(), true).lacking_functions();
    let state = resolve(&file, &machine, &mut Tenants::default()).unwrap();
    let rules = rules(&state, &Kernel { links: links(), ..Kernel::default() });
    let found: Vec<_> = rules
        .iter()
        .map(|rule| (rule.priority, rule.ipv6, rule.interface.as_deref().unwrap(), rule.to))
        .collect();
    // A VLAN above is beside them.
    let names = ["later", "out", "out.10"];
    let expected: Vec<_> = names.iter().flat_map(|name| [(false, *name), (true, *name)]).collect();
    let mut expected: Vec<_> =
        expected.into_iter().map(|(ipv6, name)| (5999, ipv6, name, None)).collect();
    let mut found = found;
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// A function may send tagged frames, or leave out the tag.
#[test]
fn the_kernel_forwards_nothing_from_interfaces_beside_those_of_functions() {
    let vlan = |id, parent| Some(Vlan { id, protocol: 0x8100, parent: Some(parent) });
    let on = |index, name, id, parent| Link {
        vlan: vlan(id, parent),
        lower: Some(parent),
        ..link(index, name)
    };
    let links = || {
        let mut links = links();
        links.extend([
            link(20, "fw"),
            on(21, "fw.7", 7, 20),
            on(22, "fw.8", 8, 20),
            on(23, "fw.9", 9, 20),
            on(24, "fw.7.1", 1, 21),
            Link { kind: "gre".into(), ..link(25, "gre1") },
            Link { kind: "macvlan".into(), lower: Some(20), ..link(26, "over") },
        ]);
        links
    };
    let found = |to: &str, back: &str| {
        let text = format!(
            "locators: [\"fd00:1::/48\"]\nsources: [\"fd00:8::/48\"]\nports: {{core: {{}}}}\n\
             sids: {{\"fd00:1::f\": {{behavior: End.AD, to: {to}, back: {back}}}}}\n"
        );
        let file =
            dataplane_file::parse("file", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let state = resolve(&file, &Links::new(links(), true), &mut Tenants::default()).unwrap();
        let rules = rules(&state, &Kernel { links: links(), ..Kernel::default() });
        let closed =
            |rule: &&InterfaceRule| rule.priority == FROM_EDGES && rule.to.is_none() && rule.ipv6;
        let names: BTreeSet<String> =
            rules.iter().filter(closed).filter_map(|rule| rule.interface.clone()).collect();
        let tunnels: Vec<String> = state.tunnels.into_values().collect();
        assert_eq!(tunnels, ["gre1"]);
        names
    };
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let on_fw = ["fw", "fw.7", "fw.7.1", "fw.8", "fw.9", "over"];
    assert_eq!(found("fw.7", "fw.8"), all(&on_fw));
    assert_eq!(found("over", "out"), all(&[&on_fw[..], &["out", "out.10"]].concat()));
    // The frames of a port are those of the domain.
    let text = "locators: [\"fd00:1::/48\"]\nports: {core: {}, fw: {}}\n\
                sids: {\"fd00:1::f\": {behavior: End.AD, to: fw.7, back: fw.8}}\n";
    let file = dataplane_file::parse("file", text).unwrap_or_else(|problems| panic!("{problems}"));
    let state = resolve(&file, &Links::new(links(), true), &mut Tenants::default()).unwrap();
    assert_eq!(beside_functions(&state, &links()), [24].into());
    // Those of a VLAN without an owner are not.
    let text = "locators: [\"fd00:1::/48\"]\nports: {core: {}, fw: {}}\n\
                sids: {\"fd00:1::f\": {behavior: End.AD, to: mv, back: out}}\n";
    let file = dataplane_file::parse("file", text).unwrap_or_else(|problems| panic!("{problems}"));
    let mut links = links();
    links.push(Link { kind: "macvlan".into(), lower: Some(23), ..link(27, "mv") });
    let machine = Links::new(links.clone(), true);
    let state = resolve(&file, &machine, &mut Tenants::default()).unwrap();
    assert_eq!(beside_functions(&state, &links), [3, 23].into());
}
