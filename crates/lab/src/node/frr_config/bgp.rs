//! BGP: one session for each address family with each neighbor, between the link's addresses.

use std::fmt::{Result, Write};
use std::net::IpAddr;

use model::topology::{Node, Routing};

use super::Router;

/// Address and autonomous system of a neighbor.
struct Peer {
    address: IpAddr,
    asn: u32,
}

pub(super) fn process(text: &mut String, router: &Router<'_>) -> Result {
    let node = router.node;
    let (Some(asn), Some(id)) = (node.asn, node.loopback4) else { return Ok(()) };
    let timers = &router.topology.timers.bgp;
    let peers: Vec<Peer> = peers(router).collect();
    writeln!(text, "router bgp {asn}\n bgp router-id {id}")?;
    // Exchange all routes, unless a node's own lines contain a policy (RFC 8212).
    writeln!(text, " no bgp ebgp-requires-policy\n no bgp default ipv4-unicast")?;
    // Multipath over different systems of equal AS path length (RFC 7938 section 5.2.3).
    writeln!(text, " bgp bestpath as-path multipath-relax")?;
    writeln!(text, " timers bgp {} {}", timers.keepalive.as_secs(), timers.hold.as_secs())?;
    for Peer { address, asn } in &peers {
        writeln!(text, " neighbor {address} remote-as {asn}")?;
        writeln!(text, " neighbor {address} timers connect 1")?;
        if timers.bfd {
            writeln!(text, " neighbor {address} bfd")?;
        }
    }
    for ipv6 in [false, true] {
        let name = if ipv6 { "ipv6" } else { "ipv4" };
        writeln!(text, " address-family {name} unicast\n  redistribute connected")?;
        if ipv6 && node.locator.is_some() {
            writeln!(text, "  redistribute static")?;
        }
        // Within a system a longer path may lead back to this router.
        writeln!(text, "  maximum-paths 64\n  maximum-paths ibgp 64 equal-cluster-length")?;
        for peer in peers.iter().filter(|peer| peer.address.is_ipv6() == ipv6) {
            let address = peer.address;
            writeln!(text, "  neighbor {address} activate")?;
            if peer.asn == asn {
                // A system has no IGP and need not have a full mesh of sessions: each router is a
                // route reflector for its neighbors (RFC 4456) and sets itself as the next hop.
                writeln!(text, "  neighbor {address} route-reflector-client")?;
                writeln!(text, "  neighbor {address} next-hop-self force")?;
            }
        }
        writeln!(text, " exit-address-family")?;
    }
    writeln!(text, "exit")
}

/// All BGP speakers at the far ends of the router's links.
fn peers<'r>(router: &'r Router<'_>) -> impl Iterator<Item = Peer> + 'r {
    let nodes = &router.topology.nodes;
    let adjacencies = router.node.interfaces.iter().flat_map(|interface| &interface.adjacencies);
    adjacencies.filter(|adjacency| runs(&nodes[adjacency.node])).flat_map(|adjacency| {
        let node = &nodes[adjacency.node];
        let interface = &node.interfaces[adjacency.interface];
        let addresses = [interface.ipv4.addr().into(), interface.ipv6.addr().into()];
        node.asn.into_iter().flat_map(move |asn| addresses.map(|address| Peer { address, asn }))
    })
}

fn runs(node: &Node) -> bool {
    node.ipv4_routing == Routing::Bgp
}
