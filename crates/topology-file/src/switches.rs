//! Rules for switches: their keys, links, and tenants' ports.

use document::{Place, Step, steps};
use model::topology::{Node, Segment, Switch, Topology};

use super::file::{Node as NodeText, NodeSrv6};
use super::switch_text::SwitchText;

/// Keys of a link that a switch's link cannot have. Its ends at the switch are AF_XDP ports, which
/// bypass the kernel's queues, and all its links are one LAN.
const KEYS: [&str; 16] = [
    "nodes",
    "mtu",
    "ipv4",
    "ipv6",
    "engine",
    "reverse",
    "rate",
    "queue",
    "delay",
    "jitter",
    "loss",
    "reorder",
    "duplicate",
    "corrupt",
    "trace",
    "filter",
];

/// Resolves a switch with its tenants.
pub(crate) fn switch(place: &mut Place<'_>, node: &str, text: &SwitchText) -> Switch {
    let at = steps!["nodes", node, "switch", "tenants"];
    Switch { tenants: tenants_file::tenants(place, at, &text.tenants) }
}

/// Reports the keys of other kinds of nodes.
pub(crate) fn check_keys(place: &mut Place<'_>, name: &str, text: &NodeText) {
    let only = [
        ("router", text.router.is_some()),
        ("srv6", !matches!(text.srv6, None | Some(NodeSrv6::Switch(false)))),
        ("routing", text.routing.is_some()),
        ("loopback", text.loopback.is_some()),
        ("config", text.config.is_some()),
        ("as", text.asn.is_some()),
        ("attach", text.attach.is_some()),
        ("via", text.via.is_some()),
        ("prefixes", text.prefixes.is_some()),
        ("bypass", text.bypass.is_some()),
        ("dataplane", text.dataplane.is_some()),
        ("functions", !text.functions.0.is_empty()),
    ];
    for (key, _) in only.into_iter().filter(|(_, given)| *given) {
        let message = format!("`{key}` is not for switches, and `{name}` is one");
        place.key(steps!["nodes", name, key], message, "remove it, or `switch`");
    }
}

/// Checks a link between a switch and another node. Returns false if it cannot be.
pub(crate) fn check_link(
    place: &mut Place<'_>,
    at: &dyn Fn(&str) -> [Step; 4],
    switch: &Node,
    member: &Node,
) -> bool {
    let given: Vec<&str> = KEYS.into_iter().filter(|key| place.tree.has(&at(key))).collect();
    for key in given {
        let message = format!("`{key}` is not for links of the switch `{}`", switch.name);
        let help = "remove it, or put a router between: AF_XDP ports bypass the kernel's queues";
        place.key(&at(key), message, help);
    }
    let why = if member.is_switch() {
        Some((
            format!("`{}` and `{}` are switches", switch.name, member.name),
            "put a router between",
        ))
    } else if !member.has_namespace() {
        let message =
            format!("`{}` has no interface for the switch `{}`", member.name, switch.name);
        Some((message, "use a host, `router: linux` or `router: frr`"))
    } else if member.name == Switch::BRIDGE {
        let message = format!("`{}` is the switch's own bridge", member.name);
        Some((message, "rename the node: it names the switch's port"))
    } else {
        None
    };
    match why {
        Some((message, help)) => {
            place.key(&at(""), message, help);
            false
        }
        None => true,
    }
}

/// Checks that switches have links, a possible MTU, and the ports of their tenants.
pub(crate) fn check(place: &mut Place<'_>, topology: &Topology) {
    for (index, node) in topology.nodes.iter().enumerate() {
        let Some(switch) = &node.switch else { continue };
        let segment = topology.segments.iter().find(|segment| segment.switch == Some(index));
        let Some(segment) = segment else {
            let name = &node.name;
            let help = format!("add links such as `h1-{name}` under `links:`");
            place.key(steps!["nodes", name], format!("the switch `{name}` has no link"), &help);
            continue;
        };
        check_mtu(place, topology, segment);
        let known = topology.interface_names(index);
        for (number, tenant) in switch.tenants.iter().enumerate() {
            for (port, (name, _)) in tenant.ports.iter().enumerate() {
                // Reported as such.
                if known.contains(&name.as_str()) || !tenants_file::is_interface_name(name) {
                    continue;
                }
                let at = steps!["nodes", &*node.name, "switch", "tenants", number, "ports", port];
                let message = format!("no link of `{}` leads to `{name}`", node.name);
                let help = match place.near(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("name one of {}", known.join(", ")),
                };
                place.key(at, message, &help);
            }
        }
    }
}

fn check_mtu(place: &mut Place<'_>, topology: &Topology, segment: &Segment) {
    let end = segment.ends[0];
    let mtu = topology.nodes[end.node].interfaces[end.interface].mtu;
    if mtu > Switch::LARGEST_MTU {
        let message =
            format!("links of the switch `{}` have an MTU of {mtu} with all headers", segment.name);
        let help =
            format!("write a smaller `mtu:`: AF_XDP ports have at most {}", Switch::LARGEST_MTU);
        place.value(steps!["mtu"], message, &help);
    }
}
