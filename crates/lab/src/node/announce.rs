//! The announcement that a lab's node sends to the controller.

use std::net::IpAddr;

use model::topology::{Node, Topology};
use model::{Adjacency, AnnouncedFunction, AnnouncedInterface, Announcement, NodeSids};
use srv6::function;

/// IGP cost of a host's second and further links: a host sends all traffic over its first link.
const STANDBY: u32 = 65_535;

/// The announcement of the node at `at`.
pub fn announcement(topology: &Topology, at: usize) -> Announcement {
    let node = &topology.nodes[at];
    let sids = node.locator.map(|locator| NodeSids {
        end: locator.sid(function::END),
        decap_ipv4: locator.sid(function::END_DX4),
        decap_ipv6: locator.sid(function::END_DT6),
    });
    let links = node.interfaces.iter().flat_map(|interface| {
        [IpAddr::V4(interface.ipv4.addr()), IpAddr::V6(interface.ipv6.addr())]
    });
    let loopbacks = [node.loopback4.map(IpAddr::V4), node.loopback6.map(IpAddr::V6)];
    Announcement {
        node: node.name.clone(),
        transit: node.is_router(),
        sids,
        addresses: loopbacks.into_iter().flatten().chain(links).collect(),
        functions: node
            .functions
            .iter()
            .map(|function| AnnouncedFunction {
                name: function.name.clone(),
                prefix: function.prefix,
                sid: function.sid,
                // Down until its data plane reports otherwise.
                up: false,
            })
            .collect(),
        interfaces: (0..node.interfaces.len()).map(|i| interface(topology, at, node, i)).collect(),
    }
}

fn interface(topology: &Topology, at: usize, node: &Node, index: usize) -> AnnouncedInterface {
    let interface = &node.interfaces[index];
    let cost = if node.is_host() && index > 0 { STANDBY } else { u32::from(interface.cost) };
    let adjacencies = topology
        .peers(interface, at)
        .map(|peer| {
            let adjacency = interface.adjacencies.iter().find(|a| a.node == peer.node);
            Adjacency {
                neighbor: topology.nodes[peer.node].name.clone(),
                cost,
                end_x: adjacency.and_then(|adjacency| node.end_x(adjacency)),
            }
        })
        .collect();
    AnnouncedInterface {
        name: interface.name.clone(),
        capacity: interface.rate,
        up: true,
        adjacencies,
    }
}
