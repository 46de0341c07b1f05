//! FRR's configuration of a router: what all protocols share, and each protocol's part.

mod bgp;
mod isis;
mod ospf;
mod rip;

use std::fmt::{Result, Write};

use model::topology::{Interface, Node, Routing, SegmentKind, Topology};

/// The line in front of a node's own lines.
pub(crate) const OWN_LINES: &str = "! from the topology file";

/// The whole `frr.conf` of the node at `at`: what the topology says, then the node's own lines.
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
    /// Whether the protocol routes IPv4, and whether it routes IPv6.
    fn families(&self, protocol: Routing) -> [bool; 2] {
        [self.node.ipv4_routing == protocol, self.node.ipv6_routing == protocol]
    }

    fn is_point_to_point(&self, interface: &Interface) -> bool {
        self.topology.segments[interface.segment].kind == SegmentKind::PointToPoint
    }
}

/// Whether nobody is behind an interface to talk to.
fn is_passive(interface: &Interface) -> bool {
    interface.adjacencies.is_empty()
}

fn write_config(text: &mut String, router: &Router<'_>) -> Result {
    let node = router.node;
    writeln!(text, "frr defaults traditional\nhostname {}", node.name)?;
    writeln!(text, "log file /run/frr/frr.log")?;
    // The kernel takes next hops out of its groups when their link goes down. zebra (8.4) does not
    // notice and goes on using the groups: links that come back would stay unused.
    writeln!(text, "no zebra nexthop kernel enable")?;
    if let Some(locator) = node.locator.filter(|_| node.ipv6_routing != Routing::Static) {
        // The locator is routed to its node; a SID that does not exist ends there.
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
