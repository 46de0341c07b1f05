//! The networks of these tests, besides those in `labs/`.

use std::fmt::Write;

use model::topology::Topology;
use srv6::{Sid, function};
use topology_file::parse;

/// FRR with all features of a small lab: parallel links, a LAN of three, different costs, a rate
/// that must not affect costs, and a router with its own lines.
///
/// ```text
///   h1 -- r1 ==== r2 -- h2
///           \    /
///           [ lan ]
///              |
///              r3 -- h3
/// ```
pub(crate) const FRR: &str = "
name: small
routing: [ospf, ospf6]
nodes:
  h1: {}
  h2: {}
  h3: {}
  r1: {router: frr, config: \"ip route 192.0.2.0/24 blackhole\\nipv6 route 2001:db8::/32 blackhole\"}
  r2: {router: frr}
  r3: {router: frr}
links:
  - h1-r1
  - h2-r2
  - h3-r3
  - r1-r2: {rate: 50mbit}
  - r1-r2
  - lan0: [r1, r2, r3]
";

/// A chain of three routers between two hosts, without daemons.
pub(crate) const CHAIN: &str = "
name: chain
nodes:
  h1: {}
  h2: {}
  r1: {router: linux}
  r2: {router: linux}
  r3: {router: linux}
links: [h1-r1, r1-r2, r2-r3, r3-h2]
";

/// The same network with SRv6 in XDP on all its routers.
pub(crate) fn with_xdp(text: &str) -> String {
    text.replace("\nnodes:\n", "\ndataplane: xdp\nnodes:\n")
}

/// A ring of FRR routers, large enough to be interrupted while it comes up.
pub(crate) fn frr_ring(routers: usize, ospf: &str) -> String {
    let mut text = String::from("name: many\nrouting: [ospf, ospf6]\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{ospf}\nnodes:");
    for n in 1..=routers {
        let _ = writeln!(text, "  r{n}: {{router: frr}}");
    }
    text += "links:\n";
    for n in 1..=routers {
        let _ = writeln!(text, "  - r{n}-r{}", n % routers + 1);
    }
    text
}

/// The resolved topology of a text, which is deterministic.
pub(crate) fn resolved(text: &str) -> Topology {
    parse("lab.yaml", text).expect("the test's topology is right")
}

/// A node's SID with this function.
pub(crate) fn sid(topology: &Topology, node: &str, function: u16) -> Sid {
    topology.node(node).and_then(|node| node.locator).expect("a router").sid(function)
}

/// The SID of a node's adjacency over an interface.
pub(crate) fn end_x(topology: &Topology, node: &str, interface: &str) -> Sid {
    let node = topology.node(node).expect("a node");
    let adjacency = node.interface(interface).expect("an interface").adjacencies[0];
    node.end_x(&adjacency).expect("a router")
}

/// A node's addresses on its first link: IPv4 and IPv6.
pub(crate) fn addresses(topology: &Topology, node: &str) -> [String; 2] {
    let interface = &topology.node(node).expect("a node").interfaces[0];
    [interface.ipv4.addr().to_string(), interface.ipv6.addr().to_string()]
}

/// The SIDs that decapsulate inner IPv4 and IPv6 packets at a node.
pub(crate) fn decapsulating(topology: &Topology, node: &str) -> [Sid; 2] {
    [sid(topology, node, function::END_DX4), sid(topology, node, function::END_DT6)]
}
