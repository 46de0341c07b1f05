//! Rules for ports that do not exist, or have no program.

use std::collections::BTreeSet;

use ipnet::IpNet;
use model::dataplane::Name;
use netlink::{InterfaceRule, Link, SLOW_PATH};

use super::edge::{FROM_EDGES, SPOOFED, closed, spoofed};
use super::stacked::with_stacked;
use super::{Forwarding, Kernel};

/// Returns the rules that keep packets from SIDs, and those with a source inside the domain from
/// everything, on ports that do not exist, or have no program, and on what is stacked on them.
pub(super) fn rules_of_absent(
    ports: &BTreeSet<Name>,
    forwarding: &Forwarding,
    kernel: &Kernel,
) -> BTreeSet<InterfaceRule> {
    let closed = closed(forwarding, kernel);
    let is_one = |link: &&Link| ports.contains(link.name.as_str());
    let present = kernel.links.iter().filter(is_one).map(|link| link.index).collect();
    let stacked = with_stacked(present, &kernel.links, |link| {
        !forwarding.domain_vlans.contains_key(&link.index) && !forwarding.has_interface(link.index)
    });
    let links = kernel.links.iter().filter(|link| stacked.contains(&link.index));
    let names: BTreeSet<&str> =
        links.map(|link| link.name.as_str()).chain(ports.iter().map(|name| &**name)).collect();
    let rule = |name: &str, priority| InterfaceRule {
        priority,
        protocol: SLOW_PATH,
        ipv6: true,
        interface: Some(name.to_owned()),
        ..InterfaceRule::default()
    };
    let mut rules = BTreeSet::new();
    for name in names {
        let to = closed.iter().map(|net| Some(IpNet::V6(*net)));
        rules.extend(to.map(|to| InterfaceRule { to, ..rule(name, FROM_EDGES) }));
        let from = spoofed(forwarding, None).0.into_iter().map(Some);
        rules.extend(from.map(|from| InterfaceRule { from, ..rule(name, SPOOFED) }));
    }
    rules
}

#[cfg(test)]
mod tests {
    use netlink::Mac;

    use super::*;
    use crate::forwarding::{Links, Tenants, resolve};

    #[test]
    fn absent_edges_drop_sources_of_the_domain_and_packets_to_sids() {
        let text = "locators: [\"fd00:1::/48\"]\nsources: [\"fd00::/16\"]\nports: {core: {}}\n";
        let file = dataplane_file::parse("file", text).unwrap();
        let mac = Some(Mac([2, 0, 0, 0, 0, 1]));
        let link = |index, name: &str, lower| Link {
            index,
            name: name.into(),
            mac,
            lower,
            ..Link::default()
        };
        let links = vec![link(1, "core", None), link(2, "down", None), link(3, "down.5", Some(2))];
        let machine = Links::new(links.clone(), true);
        let state = resolve(&file, &machine, &mut Tenants::default()).unwrap();
        let kernel = Kernel { links, ..Kernel::default() };
        let rules = rules_of_absent(&["down".into(), "gone".into()].into(), &state, &kernel);
        let line = |rule: &InterfaceRule| {
            let (to, from) = (rule.to, rule.from);
            let net = to.or(from).unwrap();
            format!("{} {} {net}", rule.priority, rule.interface.as_deref().unwrap())
        };
        let mut found: Vec<String> = rules.iter().map(line).collect();
        found.sort();
        let mut expected = Vec::new();
        for name in ["down", "down.5", "gone"] {
            expected.push(format!("{SPOOFED} {name} fd00::/16"));
            expected.push(format!("{FROM_EDGES} {name} fd00:1::/48"));
        }
        expected.sort();
        assert_eq!(found, expected);
    }
}
