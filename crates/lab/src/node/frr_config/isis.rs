//! IS-IS: one area, level 2, one topology for both families.

use std::fmt::{Result, Write};
use std::net::Ipv4Addr;

use model::topology::{Interface, Node, Routing, Topology};

use super::{Router, is_passive};

/// Name of the routing process, which interface configuration refers to.
const PROCESS: &str = "lab";

/// LSP size limit, unless a link's MTU is smaller (ISO 10589 section 7.3.4.1: 1,492 bytes; this is
/// FRR's default).
const LSP_MTU: u16 = 1497;
/// Size of the LLC header that precedes an IS-IS packet.
const LLC: u16 = 3;

pub(super) fn loopback(text: &mut String, router: &Router<'_>) -> Result {
    if runs(router.node) {
        families(text)?;
        writeln!(text, " isis passive")?;
    }
    Ok(())
}

pub(super) fn interface(text: &mut String, router: &Router<'_>, interface: &Interface) -> Result {
    if !runs(router.node) {
        return Ok(());
    }
    let timers = &router.topology.timers.isis;
    let hello = timers.hello.as_secs().max(1);
    families(text)?;
    writeln!(text, " isis circuit-type level-2-only\n isis metric {}", interface.cost)?;
    if router.is_point_to_point(interface) {
        writeln!(text, " isis network point-to-point")?;
    }
    if is_passive(interface) {
        return writeln!(text, " isis passive");
    }
    writeln!(text, " isis hello-interval {hello}")?;
    writeln!(text, " isis hello-multiplier {}", timers.hold.as_secs() / hello)?;
    if timers.bfd {
        writeln!(text, " isis bfd")?;
    }
    Ok(())
}

pub(super) fn process(text: &mut String, router: &Router<'_>) -> Result {
    let Some(id) = router.node.loopback4.filter(|_| runs(router.node)) else { return Ok(()) };
    writeln!(text, "router isis {PROCESS}\n net {}", entity(id))?;
    writeln!(text, " is-type level-2-only\n metric-style wide")?;
    writeln!(text, " lsp-mtu {}", lsp_mtu(router.topology))?;
    // Compute paths immediately, as for OSPF. The minimum interval for LSPs is one second.
    writeln!(text, " lsp-gen-interval 1\n spf-interval 1")?;
    writeln!(
        text,
        " spf-delay-ietf init-delay 0 short-delay 50 long-delay 500 holddown 1000 time-to-learn 500"
    )?;
    if router.node.locator.is_some() {
        writeln!(text, " redistribute ipv6 static level-2")?;
    }
    writeln!(text, "exit")
}

fn runs(node: &Node) -> bool {
    node.ipv4_routing == Routing::Isis
}

fn families(text: &mut String) -> Result {
    writeln!(text, " ip router isis {PROCESS}\n ipv6 router isis {PROCESS}")
}

/// Network entity title of a router: a private area, and the twelve digits of its address.
fn entity(id: Ipv4Addr) -> String {
    let [a, b, c, d] = id.octets();
    let digits = format!("{a:03}{b:03}{c:03}{d:03}");
    format!("49.0001.{}.{}.{}.00", &digits[..4], &digits[4..8], &digits[8..])
}

/// LSP size limit from the smallest MTU of all links, since all LSPs cross all links.
fn lsp_mtu(topology: &Topology) -> u16 {
    let routers = topology.nodes.iter().filter(|node| runs(node));
    let shortest = routers.flat_map(|node| &node.interfaces).map(|interface| interface.mtu).min();
    shortest.map_or(LSP_MTU, |mtu| LSP_MTU.min(mtu.saturating_sub(LLC)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_entity_title_is_the_loopbacks_digits() {
        assert_eq!(entity(Ipv4Addr::new(10, 255, 0, 7)), "49.0001.0102.5500.0007.00");
    }
}
