//! Rules for switches: their keys and links.

use document::{Place, Step, steps};
use model::topology::{BRIDGE, Node, Topology};

use super::file::{Node as NodeText, NodeSrv6};

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
    if !text.tenants.0.is_empty() {
        let message = format!("`tenants` of the switch `{name}` is a key of its `switch`");
        let help = "write `switch: {kind: openvswitch, tenants: …}`";
        place.key(steps!["nodes", name, "tenants"], message, help);
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
    } else if member.name == BRIDGE {
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

/// Checks that switches have links.
pub(crate) fn check(place: &mut Place<'_>, topology: &Topology) {
    for (index, node) in topology.nodes.iter().enumerate().filter(|(_, node)| node.is_switch()) {
        let mut segments = topology.segments.iter();
        if !segments.any(|segment| segment.switch == Some(index)) {
            let name = &node.name;
            let help = format!("add links such as `h1-{name}` under `links:`");
            place.key(steps!["nodes", name], format!("the switch `{name}` has no link"), &help);
        }
    }
}
