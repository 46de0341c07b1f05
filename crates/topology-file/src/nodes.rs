//! Rules for nodes: names, kinds, routing.

use std::net::IpAddr;

use document::{Place, Step, steps};
use model::topology::{Dataplane, Node, NodeKind, RouterKind, Routing};
use model::{is_daemon_name, is_node_name};

use super::attachment::attachment;
use super::file::{File, Node as NodeText, NodeSrv6, Router, Routing as RoutingText};
use super::programs;
use super::switches;

/// Help for an invalid name of a node or LAN.
pub(crate) const NAME_HELP: &str = "use up to 11 of A-Z, a-z, 0-9 and _, beginning with a letter, \
     not ending in _ and digits, and not a name that Linux keeps, such as lo";

/// Resolves the nodes, without interfaces and automatic addresses.
pub(crate) fn nodes(place: &mut Place<'_>, file: &File) -> Vec<Node> {
    let lab = file.routing.as_ref().map(|list| routing(place, steps!["routing"], list));
    if file.nodes.0.is_empty() {
        place.key(steps!["nodes"], "no nodes", "write at least one, such as `h1: {}`");
    }
    let dataplane = file.dataplane.unwrap_or_default();
    let mut nodes: Vec<Node> =
        file.nodes.0.iter().map(|(name, text)| node(place, name, text, lab, dataplane)).collect();
    let routers = nodes.iter_mut().zip(&file.nodes.0).filter(|(node, _)| node.is_router());
    for (ordinal, (node, (name, text))) in (1..).zip(routers) {
        node.asn = autonomous_system(place, name, text, node, ordinal);
    }
    nodes
}

/// The autonomous system of a router that runs BGP: by default a separate one for each router (RFC
/// 7938 section 5.2.1), from the private 32-bit range, which is large enough (RFC 6996).
fn autonomous_system(
    place: &mut Place<'_>,
    name: &str,
    text: &NodeText,
    node: &Node,
    ordinal: u32,
) -> Option<u32> {
    const FIRST_PRIVATE: u32 = 4_200_000_000;
    let at = steps!["nodes", name, "as"];
    let runs_bgp = [node.ipv4_routing, node.ipv6_routing].contains(&Routing::Bgp);
    if let (Some(_), false) = (text.asn, runs_bgp) {
        let message = format!("`as` is for BGP, which `{name}` does not run");
        place.key(at, message, "add `routing: [bgp]`, or remove it");
    }
    // RFC 7607, RFC 6793 section 9, RFC 7300.
    if let Some(asn @ (0 | 23_456 | 65_535 | u32::MAX)) = text.asn {
        place.value(
            at,
            format!("{asn} is not an autonomous system number"),
            "write a number such as 65001",
        );
    }
    runs_bgp.then(|| text.asn.unwrap_or(FIRST_PRIVATE + ordinal))
}

fn node(
    place: &mut Place<'_>,
    name: &str,
    text: &NodeText,
    lab: Option<(Routing, Routing)>,
    lab_dataplane: Dataplane,
) -> Node {
    let at = |key: &str| [Step::from("nodes"), Step::from(name), Step::from(key)];
    if !is_node_name(name) {
        place.key(&at(""), format!("`{name}` cannot name a node"), NAME_HELP);
    }
    if is_daemon_name(name) {
        let message = format!(
            "`{name}` is what a daemon of the lab is called, as in `kaido lab start {name}`"
        );
        place.key(&at(""), message, "give the node another name");
    }
    let attachment = match text.switch {
        None => attachment(place, name, text),
        // Its keys are reported with the others that a switch cannot have.
        Some(_) => None,
    };
    let kind = match text.router {
        _ if text.switch.is_some() => NodeKind::Switch,
        None if text.via.is_some() => NodeKind::Router(RouterKind::Virtual),
        None => NodeKind::Host,
        Some(Router::Frr) => NodeKind::Router(RouterKind::Frr),
        Some(Router::Linux) => NodeKind::Router(RouterKind::Linux),
        Some(Router::Virtual) => NodeKind::Router(RouterKind::Virtual),
    };
    let has_kernel = attachment.is_none() && kind != NodeKind::Router(RouterKind::Virtual);
    if kind == NodeKind::Switch {
        switches::check_keys(place, name, text);
    } else if !has_kernel {
        let only = [
            ("srv6", !matches!(text.srv6, None | Some(NodeSrv6::Switch(false)))),
            ("routing", text.routing.is_some()),
            ("loopback", text.loopback.is_some() && attachment.is_some()),
            ("config", text.config.is_some()),
            ("dataplane", text.dataplane.is_some()),
            ("functions", !text.functions.0.is_empty()),
        ];
        for (key, _) in only.into_iter().filter(|(_, given)| *given) {
            let message = format!("`{key}` needs a kernel, and `{name}` has none");
            place.key(&at(key), message, "use `router: linux` or `router: frr`, or remove it");
        }
    } else if kind == NodeKind::Host {
        let only = [
            ("srv6", !matches!(text.srv6, None | Some(NodeSrv6::Switch(false)))),
            ("routing", text.routing.is_some()),
            ("loopback", text.loopback.is_some()),
            ("config", text.config.is_some()),
            ("as", text.asn.is_some()),
            // XDP forwards packets on arrival, but a host does not forward.
            ("dataplane: xdp", text.dataplane == Some(Dataplane::Xdp)),
        ];
        for (key, _) in only.into_iter().filter(|(_, given)| *given) {
            let message = format!("`{key}` is for routers, and `{name}` is a host");
            let key = key.split(':').next().unwrap_or(key);
            place.key(&at(key), message, "add `router: frr`, or remove it");
        }
    }
    let is_router = matches!(kind, NodeKind::Router(_));
    let has_srv6 = has_kernel && is_router && text.srv6 != Some(NodeSrv6::Switch(false));
    if text.dataplane == Some(Dataplane::Xdp) && has_kernel && is_router && !has_srv6 {
        let message = format!("`dataplane: xdp` is for SRv6, which `{name}` does not speak");
        place.key(&at("dataplane"), message, "remove it, or `srv6: false`");
    }
    if kind == NodeKind::Router(RouterKind::Linux) && text.config.is_some() {
        let message = format!("`config` is for FRR, which `{name}` does not run");
        place.key(&at("config"), message, "write `router: frr`, or remove it");
    }
    let own = text.routing.as_ref().map(|list| routing(place, &at("routing"), list));
    let (ipv4_routing, ipv6_routing) = match kind {
        NodeKind::Host | NodeKind::Switch | NodeKind::Router(RouterKind::Virtual) => {
            (Routing::Static, Routing::Static)
        }
        NodeKind::Router(RouterKind::Linux) => {
            if own.is_some_and(|own| own != (Routing::Static, Routing::Static)) {
                let message = format!("`{name}` runs no routing protocol: it has no FRR");
                place.key(&at("routing"), message, "write `router: frr`, or `routing: [static]`");
            }
            (Routing::Static, Routing::Static)
        }
        NodeKind::Router(RouterKind::Frr) => own.or(lab).unwrap_or((Routing::Ospf, Routing::Ospf)),
    };
    let (mut loopback4, mut loopback6) = (None, None);
    for (index, address) in text.loopback.iter().flatten().enumerate() {
        let second = match address.0 {
            IpAddr::V4(address) => loopback4.replace(address).is_some(),
            IpAddr::V6(address) => loopback6.replace(address).is_some(),
        };
        if second {
            let at = steps!["nodes", name, "loopback", index];
            let message = "a second loopback address of this family";
            place.value(at, message, "write at most one IPv4 and one IPv6 address");
        }
    }
    let locator = match text.srv6 {
        Some(NodeSrv6::Locator(locator)) => Some(locator),
        _ => None,
    };
    Node {
        name: name.into(),
        kind,
        attachment,
        ipv4_routing,
        ipv6_routing,
        asn: None,
        loopback4,
        loopback6,
        locator,
        dataplane: if has_srv6 {
            text.dataplane.unwrap_or(lab_dataplane)
        } else {
            Dataplane::Kernel
        },
        extra_config: text.config.clone(),
        functions: Vec::new(),
        tenants: programs::tenants(place, name, text),
        interfaces: Vec::new(),
    }
}

/// Sources of IPv4 and IPv6 routes, from a list of protocols.
fn routing(place: &mut Place<'_>, at: &[Step], list: &[RoutingText]) -> (Routing, Routing) {
    let (mut ipv4, mut ipv6) = (None::<RoutingText>, None::<RoutingText>);
    for (index, protocol) in list.iter().copied().enumerate() {
        let item = [at, &[Step::Index(index)]].concat();
        let name = protocol.name();
        if list[..index].contains(&protocol) {
            place.value(&item, format!("`{name}` is listed twice"), "remove one of the two");
            continue;
        }
        let families =
            [(&mut ipv4, protocol.is_ipv4(), "IPv4"), (&mut ipv6, protocol.is_ipv6(), "IPv6")];
        for (held, wanted, family) in families {
            match held {
                Some(other) if wanted => {
                    let other = other.name();
                    let message = format!("`{name}` and `{other}` both route {family}");
                    place.value(&item, message, "use one protocol per address family");
                }
                _ if wanted => *held = Some(protocol),
                _ => {}
            }
        }
    }
    let of = |protocol: Option<RoutingText>| match protocol {
        Some(RoutingText::Ospf | RoutingText::Ospf6) => Routing::Ospf,
        Some(RoutingText::Isis) => Routing::Isis,
        Some(RoutingText::Rip | RoutingText::Ripng) => Routing::Rip,
        Some(RoutingText::Bgp) => Routing::Bgp,
        Some(RoutingText::Static) | None => Routing::Static,
    };
    (of(ipv4), of(ipv6))
}

/// Reports a reference to a node that does not exist.
pub(crate) fn unknown_node<'c>(
    place: &mut Place<'_>,
    path: &[Step],
    name: &str,
    nodes: impl IntoIterator<Item = &'c str>,
) {
    let help = match place.near(name, nodes) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("add `{name}: {{}}` under `nodes:`, or correct the name"),
    };
    place.value(path, format!("no node is called `{name}`"), &help);
}
