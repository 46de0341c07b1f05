//! Where routers should send what: the shortest paths of a topology.
//!
//! Static routes are these; with a routing protocol they are what its routes must become before a
//! lab counts as converged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::topology::{Interface, Node, Routing, Topology};
use pathfinder::{Graph, GraphArc, GraphNode, NodeId, PortId, igp};

/// The interfaces, by index at their node, over which a prefix is reached.
pub type Destination = (IpNet, BTreeSet<usize>);

/// The shortest paths between the routers of a topology, for one address family.
pub struct Routes {
    ipv6: bool,
    graph: Graph,
    /// Each node's prefixes: the prefix, and what its last link costs.
    prefixes: BTreeMap<IpNet, Vec<(NodeId, u32)>>,
    /// `costs[to][from]`, where `to` owns a prefix.
    costs: BTreeMap<NodeId, Vec<Option<u64>>>,
}

impl Routes {
    /// All routers, as static routes see them.
    pub fn of_all(topology: &Topology, ipv6: bool) -> Self {
        Self::of(topology, ipv6, Metric::Cost, |node| node.is_router())
    }

    /// Only the routers that run a protocol for the family, as the protocol counts.
    pub fn of_protocol(topology: &Topology, ipv6: bool, protocol: Routing) -> Self {
        let metric = match protocol {
            Routing::Static | Routing::Ospf | Routing::Isis => Metric::Cost,
            Routing::Rip | Routing::Bgp => Metric::Hops,
        };
        Self::of(topology, ipv6, metric, |node| routing(node, ipv6) == protocol)
    }

    fn of(
        topology: &Topology,
        ipv6: bool,
        metric: Metric,
        takes_part: impl Fn(&Node) -> bool,
    ) -> Self {
        let graph = graph(topology, metric, &takes_part);
        let mut prefixes: BTreeMap<IpNet, Vec<(NodeId, u32)>> = BTreeMap::new();
        let routers = topology.nodes.iter().enumerate().filter(|(_, node)| takes_part(node));
        for (at, node) in routers {
            for (prefix, cost) in own_prefixes(node, ipv6, metric) {
                prefixes.entry(prefix).or_default().push((NodeId(at as u32), cost));
            }
        }
        let owners: BTreeSet<NodeId> =
            prefixes.values().flatten().map(|&(owner, _)| owner).collect();
        let costs = owners.into_iter().map(|owner| (owner, igp::costs_to(&graph, owner))).collect();
        Self { ipv6, graph, prefixes, costs }
    }

    /// Every prefix that the node at `node` has to reach over others, with the interfaces of all
    /// its shortest paths.
    pub fn from_node(&self, node: usize) -> Vec<Destination> {
        let from = NodeId(node as u32);
        let interfaces = |&(owner, last): &(NodeId, u32)| {
            let costs = &self.costs[&owner];
            let cost = costs[node]? + u64::from(last);
            let arcs = igp::next_arcs(&self.graph, from, owner, costs);
            // A port's number is its interface's index, as `graph` gives it.
            let ports: BTreeSet<usize> = arcs.map(|arc| self.graph.arc(arc).port.index()).collect();
            Some((cost, ports))
        };
        let own = |owners: &[(NodeId, u32)]| owners.iter().any(|(owner, _)| *owner == from);
        self.prefixes
            .iter()
            .filter(|(_, owners)| !own(owners))
            .filter_map(|(prefix, owners)| {
                let ways: Vec<_> = owners.iter().filter_map(interfaces).collect();
                let cheapest = ways.iter().map(|(cost, _)| *cost).min()?;
                let best = ways.into_iter().filter(|(cost, _)| *cost == cheapest);
                Some((*prefix, best.flat_map(|(_, ports)| ports).collect()))
            })
            .collect()
    }

    /// The static routes of a node: as [`Routes::from_node`], with neighbouring prefixes that go
    /// the same way merged. A merged prefix holds nothing that its parts did not.
    pub fn aggregated(&self, node: usize) -> Vec<Destination> {
        let mut routes: BTreeMap<IpNet, BTreeSet<usize>> =
            self.from_node(node).into_iter().collect();
        let longest = if self.ipv6 { 128 } else { 32 };
        for length in (1..=longest).rev() {
            let of_length: Vec<IpNet> =
                routes.keys().filter(|prefix| prefix.prefix_len() == length).copied().collect();
            for prefix in of_length {
                let Some(parent) = prefix.supernet() else { continue };
                let sibling = sibling(prefix, parent);
                // The lower half stands for both, once.
                if prefix > sibling || routes.contains_key(&parent) {
                    continue;
                }
                if routes.contains_key(&prefix) && routes.get(&prefix) == routes.get(&sibling) {
                    let interfaces = routes.remove(&prefix).unwrap_or_default();
                    routes.remove(&sibling);
                    routes.insert(parent, interfaces);
                }
            }
        }
        routes.into_iter().collect()
    }
}

/// A prefix, and by which interfaces to which neighbours it is reached.
pub type StaticRoute = (IpNet, Vec<(usize, IpAddr)>);

impl Routes {
    /// The static routes of a node, with their next hops.
    pub fn static_routes(&self, topology: &Topology, node: usize) -> Vec<StaticRoute> {
        let hop = |index: usize| {
            // On a LAN the first router in the file's order stands for all behind it.
            let peer = topology.nodes[node].interfaces[index].adjacencies.first()?;
            let peer = &topology.nodes[peer.node].interfaces[peer.interface];
            let (v4, v6) = (IpAddr::V4(peer.ipv4.addr()), IpAddr::V6(peer.ipv6.addr()));
            Some((index, if self.ipv6 { v6 } else { v4 }))
        };
        let route = |(prefix, by): Destination| (prefix, by.into_iter().filter_map(hop).collect());
        self.aggregated(node).into_iter().map(route).collect()
    }
}

/// What the node's routes of one family come from.
pub(crate) fn routing(node: &Node, ipv6: bool) -> Routing {
    if ipv6 { node.ipv6_routing } else { node.ipv4_routing }
}

/// What makes one path shorter than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    /// The links' costs.
    Cost,
    /// Nothing but how many there are.
    Hops,
}

impl Metric {
    fn of(self, interface: &Interface) -> u32 {
        match self {
            Self::Cost => u32::from(interface.cost),
            Self::Hops => 1,
        }
    }
}

/// The routers and the links between them; a port's number is its interface's index.
fn graph(topology: &Topology, metric: Metric, takes_part: &impl Fn(&Node) -> bool) -> Graph {
    let nodes = topology
        .nodes
        .iter()
        .map(|node| GraphNode {
            name: String::new(),
            transit: node.is_router(),
            sids: None,
            functions: Vec::new(),
        })
        .collect();
    let mut arcs = Vec::new();
    for (at, node) in topology.nodes.iter().enumerate().filter(|(_, node)| takes_part(node)) {
        for (index, interface) in node.interfaces.iter().enumerate() {
            let peers = interface.adjacencies.iter().map(|adjacency| adjacency.node);
            arcs.extend(peers.filter(|&peer| takes_part(&topology.nodes[peer])).map(|peer| {
                GraphArc {
                    from: NodeId(at as u32),
                    to: NodeId(peer as u32),
                    port: PortId(index as u32),
                    cost: metric.of(interface),
                    capacity: None,
                    end_x: None,
                    usable: true,
                }
            }));
        }
    }
    Graph::new(nodes, arcs)
}

/// The prefixes that a router brings in: its links', its loopback's, its locator, those behind it.
fn own_prefixes(node: &Node, ipv6: bool, metric: Metric) -> Vec<(IpNet, u32)> {
    let links = node.interfaces.iter().map(|interface| {
        let prefix = if ipv6 {
            IpNet::V6(interface.ipv6.trunc())
        } else {
            IpNet::V4(interface.ipv4.trunc())
        };
        (prefix, metric.of(interface))
    });
    let loopback = if ipv6 {
        node.loopback6.map(|address| IpNet::V6(Ipv6Net::from(address)))
    } else {
        node.loopback4.map(|address| IpNet::V4(Ipv4Net::from(address)))
    };
    let locator = node.locator.filter(|_| ipv6).map(|locator| IpNet::V6(locator.prefix()));
    let behind = node.prefixes().iter().filter(|prefix| prefix.addr().is_ipv6() == ipv6);
    let own = loopback.into_iter().chain(locator).chain(behind.copied());
    links.chain(own.map(|prefix| (prefix, 0))).collect()
}

/// The other half of `parent`.
fn sibling(prefix: IpNet, parent: IpNet) -> IpNet {
    let halves = parent.subnets(prefix.prefix_len()).expect("the prefix is one of its halves");
    halves.into_iter().find(|half| *half != prefix).expect("there are two halves")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(nodes: usize) -> Topology {
        let mut text = String::from("name: ring\nrouting: [static]\nnodes:\n");
        for n in 0..nodes {
            text += &format!("  r{n}: {{router: linux}}\n");
        }
        text += "links:\n";
        for n in 0..nodes {
            text += &format!("  - r{n}-r{}\n", (n + 1) % nodes);
        }
        model::topology::parse("ring", &text).unwrap()
    }

    #[test]
    fn both_ways_round_a_ring_are_used_where_they_are_equal() {
        let topology = ring(4);
        let routes = Routes::of_all(&topology, false).from_node(0);
        let ways = |prefix: &str| {
            let prefix: IpNet = prefix.parse().unwrap();
            routes.iter().find(|(p, _)| *p == prefix).map(|(_, i)| i.len())
        };
        let loopback = |n: usize| format!("{}/32", topology.nodes[n].loopback4.unwrap());
        assert_eq!(ways(&loopback(1)), Some(1));
        assert_eq!(ways(&loopback(2)), Some(2));
        assert_eq!(ways(&loopback(0)), None);
        // The link on the far side, r1-r2, is reached over r1 alone: r2's way is longer.
        assert_eq!(ways(&topology.segments[1].ipv4.to_string()), Some(1));
    }

    #[test]
    fn aggregation_changes_no_destination() {
        let topology = ring(50);
        for ipv6 in [false, true] {
            let routes = Routes::of_all(&topology, ipv6);
            for node in [0, 7, 49] {
                let (plain, merged) = (routes.from_node(node), routes.aggregated(node));
                assert!(merged.len() * 3 < plain.len(), "{} {}", merged.len(), plain.len());
                for (prefix, interfaces) in &plain {
                    let covering = merged.iter().filter(|(m, _)| m.contains(prefix));
                    let best = covering.max_by_key(|(m, _)| m.prefix_len()).unwrap();
                    assert_eq!(&best.1, interfaces, "{prefix} from {node}");
                }
                let addresses = |routes: &[Destination]| -> f64 {
                    let bits = if ipv6 { 128 } else { 32 };
                    routes.iter().map(|(p, _)| 2f64.powi(bits - i32::from(p.prefix_len()))).sum()
                };
                assert_eq!(addresses(&plain), addresses(&merged));
            }
        }
    }
}
