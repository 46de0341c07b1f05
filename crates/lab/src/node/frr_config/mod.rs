//! FRR configuration of a router: the common part, and one part for each protocol.

mod bgp;
mod isis;
mod ospf;
mod rip;

use std::fmt::{Result, Write};

use model::topology::{Interface, Node, Routing, SegmentKind, Topology};

/// The line that precedes a node's own lines.
pub(crate) const OWN_LINES: &str = "! from the topology file";

/// The complete `frr.conf` of the node at `at`: the generated lines, then the node's own.
pub fn config(topology: &Topology, at: usize) -> String {
    let node = &topology.nodes[at];
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_config(&mut text, &Router { topology, node });
    if let Some(extra) = &node.extra_config {
        text.push_str(OWN_LINES);
        text.push('\n');
        text.push_str(extra.trim_end());
        text.push('\n');
    }
    text
}

/// A router of a topology.
struct Router<'t> {
    topology: &'t Topology,
    node: &'t Node,
}

impl Router<'_> {
    /// True for each of IPv4 and IPv6 if the protocol routes it.
    fn families(&self, protocol: Routing) -> [bool; 2] {
        [self.node.ipv4_routing == protocol, self.node.ipv6_routing == protocol]
    }

    fn is_point_to_point(&self, interface: &Interface) -> bool {
        self.topology.segments[interface.segment].kind == SegmentKind::PointToPoint
    }
}

/// True if an interface has no neighbor.
fn is_passive(interface: &Interface) -> bool {
    interface.adjacencies.is_empty()
}

fn write_config(text: &mut String, router: &Router<'_>) -> Result {
    let node = router.node;
    writeln!(text, "frr defaults traditional\nhostname {}", node.name)?;
    writeln!(text, "log stdout")?;
    // The kernel removes next hops from nexthop groups when their link goes down. zebra (8.4) does
    // not notice and keeps using the groups, so links that come up again would stay unused.
    writeln!(text, "no zebra nexthop kernel enable")?;
    if let Some(locator) = node.locator.filter(|_| node.ipv6_routing != Routing::Static) {
        // The locator is routed to its node, which discards packets for SIDs that do not exist.
        writeln!(text, "ipv6 route {locator} blackhole")?;
    }
    writeln!(text, "interface lo")?;
    ospf::loopback(text, router)?;
    isis::loopback(text, router)?;
    writeln!(text, "exit")?;
    for interface in &node.interfaces {
        writeln!(text, "interface {}", interface.name)?;
        ospf::interface(text, router, interface)?;
        isis::interface(text, router, interface)?;
        writeln!(text, "exit")?;
    }
    ospf::process(text, router)?;
    isis::process(text, router)?;
    rip::process(text, router)?;
    bgp::process(text, router)
}
