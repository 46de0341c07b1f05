//! Packets that tenants' programs drop, in the rows of their links.

use lab::Lab;
use model::topology::{Node, SegmentKind, Topology};
use output::xsk::XskDirection;

use super::reading::{Count, Name, Reading};
use crate::commands::xsk;
use crate::failure::Failure;

/// Takes a snapshot of the links, with the packets that programs have dropped.
pub(super) fn take(lab: &Lab) -> Result<Reading, Failure> {
    let mut reading = Reading::take(lab)?;
    add(lab, &mut reading.0)?;
    Ok(reading)
}

/// Adds the packets that programs have dropped to the counts of the directions.
fn add(lab: &Lab, counts: &mut [Count]) -> Result<(), Failure> {
    if lab.topology().nodes.iter().all(|node| node.tenants.is_empty()) {
        return Ok(());
    }
    for (node, sockets) in xsk::sockets_of(lab.name())? {
        let Some(node) = lab.topology().nodes.iter().find(|one| one.name == node) else { continue };
        for socket in sockets {
            let Some((name, suffix)) = row(lab.topology(), node, &socket) else { continue };
            let Some(count) = counts.iter_mut().find(|count| count.name == name) else { continue };
            for (cause, packets) in [
                ("program", socket.dropped + socket.redirected),
                ("policy", socket.dropped_by_policy),
                ("unfit", socket.unfit),
            ] {
                let cause = format!("{cause}{suffix}");
                match count.dropped.iter_mut().find(|(other, _)| *other == cause) {
                    // A port may have several queues.
                    Some((_, sum)) => *sum += packets,
                    None => count.dropped.push((cause, packets)),
                }
            }
        }
    }
    Ok(())
}

/// Returns the row of a socket's direction, and the suffix of its causes: a LAN has a row for what
/// each node sends, and `-to` marks what is sent to the node.
fn row(topology: &Topology, node: &Node, socket: &XskDirection) -> Option<(Name, &'static str)> {
    let transmits = socket.direction == "transmit";
    if node.is_switch() {
        // Its ports are called like the nodes that they lead to.
        let (link, from) = (node.name.clone(), socket.interface.clone());
        let to = String::new();
        return Some((Name { link, from, to }, if transmits { "-to" } else { "" }));
    }
    let ends = topology.segments.iter().find_map(|segment| {
        let is_its = |end: &&model::topology::End| {
            let one = &topology.nodes[end.node];
            one.name == node.name && one.interfaces[end.interface].name == socket.interface
        };
        segment.ends.iter().find(is_its).map(|own| (segment, own))
    });
    let (segment, own) = ends?;
    let (link, mine) = (segment.name.clone(), node.name.clone());
    if segment.kind == SegmentKind::Lan {
        let name = Name { link, from: mine, to: String::new() };
        return Some((name, if transmits { "" } else { "-to" }));
    }
    let peer = segment.ends.iter().find(|end| end.node != own.node)?;
    let peer = topology.nodes[peer.node].name.clone();
    let (from, to) = if transmits { (mine, peer) } else { (peer, mine) };
    Some((Name { link, from, to }, ""))
}
