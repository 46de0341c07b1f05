//! FRR's configuration of a router.

use std::fmt::Write;

use model::topology::{Node, Routing, SegmentKind, Topology};

/// The line in front of a node's own lines.
pub(crate) const OWN_LINES: &str = "! from the topology file";

/// The whole `frr.conf` of the node at `at`: what the topology says, then the node's own lines.
pub fn config(topology: &Topology, at: usize) -> String {
    let node = &topology.nodes[at];
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_config(&mut text, topology, node);
    if let Some(extra) = &node.extra_config {
        text.push_str(OWN_LINES);
        text.push('\n');
        text.push_str(extra.trim_end());
        text.push('\n');
    }
    text
}

fn write_config(text: &mut String, topology: &Topology, node: &Node) -> std::fmt::Result {
    let ospf = node.ipv4_routing == Routing::Ospf;
    let ospf6 = node.ipv6_routing == Routing::Ospf;
    writeln!(text, "frr defaults traditional\nhostname {}", node.name)?;
    writeln!(text, "log file /run/frr/frr.log")?;
    // The kernel takes next hops out of its groups when their link goes down. zebra (8.4) does not
    // notice and goes on using the groups: links that come back would stay unused.
    writeln!(text, "no zebra nexthop kernel enable")?;
    if let Some(locator) = node.locator.filter(|_| ospf6) {
        // The locator is routed to its node; a SID that does not exist ends there.
        writeln!(text, "ipv6 route {locator} blackhole")?;
    }
    writeln!(text, "interface lo")?;
    if ospf {
        writeln!(text, " ip ospf area 0")?;
    }
    if ospf6 {
        writeln!(text, " ipv6 ospf6 area 0")?;
    }
    writeln!(text, "exit")?;
    for interface in &node.interfaces {
        let segment = &topology.segments[interface.segment];
        // Without a router behind it there is nobody to talk to.
        let passive = interface.adjacencies.is_empty();
        let point_to_point = segment.kind == SegmentKind::PointToPoint;
        let (hello, dead) = (topology.ospf.hello.as_secs(), topology.ospf.dead.as_secs());
        writeln!(text, "interface {}", interface.name)?;
        for family in [("ip ospf", ospf), ("ipv6 ospf6", ospf6)].iter().filter(|f| f.1) {
            let family = family.0;
            writeln!(text, " {family} area 0")?;
            // Given, not derived: FRR would take it from what the device calls its speed.
            writeln!(text, " {family} cost {}", interface.cost)?;
            writeln!(text, " {family} hello-interval {hello}")?;
            writeln!(text, " {family} dead-interval {dead}")?;
            if point_to_point {
                writeln!(text, " {family} network point-to-point")?;
            }
            if passive {
                writeln!(text, " {family} passive")?;
            }
        }
        writeln!(text, "exit")?;
    }
    let Some(router_id) = node.loopback4 else { return Ok(()) };
    // A lab's network is small and its user waits: paths are computed at once.
    if ospf {
        writeln!(text, "router ospf\n ospf router-id {router_id}")?;
        writeln!(text, " timers throttle spf 0 50 500\n timers throttle lsa all 0")?;
        writeln!(text, " timers lsa min-arrival 0\nexit")?;
    }
    if ospf6 {
        writeln!(text, "router ospf6\n ospf6 router-id {router_id}")?;
        writeln!(text, " timers throttle spf 0 50 500\n timers lsa min-arrival 0")?;
        writeln!(text, " redistribute static\nexit")?;
    }
    Ok(())
}
