//! Rules for the tenants of nodes, whose P4 programs judge packets.

use document::{Place, Step, listed, steps};
use model::Tenant;
use model::topology::{MAX_AF_XDP_MTU, Node, Segment, Topology};

use super::file::Node as NodeText;

/// Resolves the tenants of a node, or of its switch.
pub(crate) fn tenants(place: &mut Place<'_>, node: &str, text: &NodeText) -> Vec<Tenant> {
    match &text.switch {
        Some(switch) => tenants_file::tenants(
            place,
            steps!["nodes", node, "switch", "tenants"],
            &switch.tenants,
        ),
        None => tenants_file::tenants(place, steps!["nodes", node, "tenants"], &text.tenants),
    }
}

/// Checks that nodes with tenants can have them, that they have the ports, and their MTU. A switch has
/// AF_XDP ports without tenants, too.
pub(crate) fn check(place: &mut Place<'_>, topology: &Topology) {
    for (index, node) in topology.nodes.iter().enumerate() {
        if node.tenants.is_empty() && !node.is_switch() {
            continue;
        }
        let at = match node.is_switch() {
            true => steps!["nodes", &*node.name, "switch", "tenants"].to_vec(),
            false => steps!["nodes", &*node.name, "tenants"].to_vec(),
        };
        if let Some((message, help)) = without_programs(node) {
            place.key(&at, message, help);
            continue;
        }
        let known = topology.interface_names(index);
        if known.is_empty() {
            // Reported as such.
            continue;
        }
        check_mtu(place, topology, index);
        for (number, tenant) in node.tenants.iter().enumerate() {
            for (port, (name, _)) in tenant.ports.iter().enumerate() {
                // Reported as such.
                if known.contains(&name.as_str()) || !model::is_interface_name(name) {
                    continue;
                }
                let step: [Step; 3] = [number.into(), "ports".into(), port.into()];
                let message = format!("no link of `{}` leads to `{name}`", node.name);
                let help = match place.near(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("name one of {}", listed(known.iter().copied())),
                };
                place.key(&[&at[..], &step].concat(), message, &help);
            }
        }
    }
}

/// Returns the reason for which no program can judge the packets of a node.
fn without_programs(node: &Node) -> Option<(String, &'static str)> {
    let name = &node.name;
    if !node.has_namespace() {
        let message = format!("`tenants` needs a kernel, and `{name}` has none");
        return Some((message, "use a host, `router: linux` or `router: frr`, or remove it"));
    }
    if node.runs_xdp() {
        let message = format!("`tenants` and `dataplane: xdp` of `{name}` both need XDP");
        return Some((
            message,
            "write `dataplane: kernel`, or put a switch with the tenants between",
        ));
    }
    None
}

/// Checks the MTU of the interfaces whose packets are judged.
fn check_mtu(place: &mut Place<'_>, topology: &Topology, index: usize) {
    let node = &topology.nodes[index];
    for segment in &topology.segments {
        let mut ends = segment.ends.iter();
        let end = match segment.switch {
            Some(switch) if switch == index => ends.next(),
            _ => ends.find(|end| {
                end.node == index && node.is_judged(&node.interfaces[end.interface].name)
            }),
        };
        let Some(end) = end else { continue };
        let mtu = topology.nodes[end.node].interfaces[end.interface].mtu;
        if mtu > MAX_AF_XDP_MTU {
            let message = format!(
                "packets of `{}` are up to {mtu} bytes long, with all headers",
                segment.name
            );
            let help = format!("write a smaller `mtu:`: programs get at most {MAX_AF_XDP_MTU}");
            place.value(&mtu_of(place, segment), message, &help);
            return;
        }
    }
}

/// Path of the MTU that a segment has: its own, or that of the file.
fn mtu_of(place: &Place<'_>, segment: &Segment) -> Vec<Step> {
    let items = (0..).take_while(|index: &usize| place.tree.has(steps!["links", *index]));
    let mut own = items.map(|index| steps!["links", index, &*segment.name, "mtu"].to_vec());
    own.find(|path| place.tree.has(path)).unwrap_or_else(|| steps!["mtu"].to_vec())
}
