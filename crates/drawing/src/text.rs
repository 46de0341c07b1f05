//! Renders a topology as text.

use std::fmt::Write;

use model::topology::{Means, Node, NodeKind, RouterKind, SegmentKind, Topology};

/// Maximum number of a LAN's nodes in a line: all of them in each line grow with the square of their number.
const MAX_PEERS: usize = 16;

/// Nodes with their addresses and locators, then links with their rates and costs.
pub fn text(topology: &Topology) -> String {
    let mut drawn = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut drawn, topology);
    drawn
}

fn write_all(text: &mut String, topology: &Topology) -> std::fmt::Result {
    let width = topology.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0);
    for (at, node) in topology.nodes.iter().enumerate() {
        writeln!(text, "{:width$}  {}", node.name, what(node))?;
        for (number, interface) in node.interfaces.iter().enumerate() {
            let last = number + 1 == node.interfaces.len();
            let mut all = topology.peers(interface, at);
            let peers = all.by_ref().take(MAX_PEERS);
            let peers: Vec<&str> =
                peers.map(|end| topology.nodes[end.node].name.as_str()).collect();
            let more = match all.count() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let branch = if last { "└─" } else { "├─" };
            let line = match topology.segments[interface.segment].kind {
                SegmentKind::PointToPoint => "──".into(),
                SegmentKind::Lan => format!("─[{}]─", interface.name),
            };
            write!(text, "{:width$}  {branch}{line} {}{more}", "", peers.join(", "))?;
            write!(text, "  {}  {}", interface.ipv4, interface.ipv6)?;
            if let Some(rate) = interface.rate {
                write!(text, "  {rate}")?;
            }
            if !interface.impairments.is_none() {
                write!(text, "  {}", interface.impairments)?;
            }
            writeln!(text, "  cost {}", interface.cost)?;
        }
    }
    for app in &topology.applications {
        write!(text, "\n{}: {} -> {}, {}", app.name, app.from, app.to, app.class)?;
        if let Some(demand) = app.demand {
            write!(text, ", {demand}")?;
        }
    }
    if !topology.applications.is_empty() {
        writeln!(text)?;
    }
    Ok(())
}

fn what(node: &Node) -> String {
    let kind = match node.kind {
        NodeKind::Switch => "switch (Open vSwitch)",
        NodeKind::Host => "host",
        NodeKind::Router(RouterKind::Virtual) if node.attachment.is_some() => "router",
        NodeKind::Router(RouterKind::Virtual) => "virtual router",
        NodeKind::Router(RouterKind::Frr) => "router (FRR)",
        NodeKind::Router(RouterKind::Linux) => "router",
    };
    let xdp = node.runs_xdp().then(|| "XDP".to_owned());
    let loopback = node.loopback4.map(|address| address.to_string());
    let loopback6 = node.loopback6.map(|address| address.to_string());
    let locator = node.locator.map(|locator| format!("locator {locator}"));
    let attached = node.attachment.as_ref().map(|attachment| match &attachment.means {
        Means::Frames => format!("attached to {}", attachment.interface),
        Means::Queue { prefixes, .. } => {
            let behind: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
            format!("attached to {}, with {} behind", attachment.interface, behind.join(", "))
        }
    });
    let tenants = node.tenants.iter().map(|tenant| {
        let ports: Vec<&str> = tenant.ports.iter().map(|(port, _)| port.as_str()).collect();
        format!("{} judges {}", tenant.name, ports.join(", "))
    });
    let tenants = tenants.reduce(|all, one| format!("{all}; {one}"));
    let parts = [Some(kind.to_owned()), tenants, attached, xdp, loopback, loopback6, locator];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}
