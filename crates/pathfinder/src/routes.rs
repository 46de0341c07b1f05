//! Shortest paths of a topology, as routes of its routers.
//!
//! Static routes are derived from them. With a routing protocol a lab counts as converged once the
//! protocol's routes match them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::topology::{Interface, Node, Routing, Topology};

use crate::{Graph, GraphArc, GraphNode, NodeId, PortId, igp};

/// A prefix and the interfaces, by index at their node, over which it is reachable.
pub type Destination = (IpNet, BTreeSet<usize>);

/// The shortest paths between the routers of a topology, for one address family.
pub struct Routes {
    ipv6: bool,
    graph: Graph,
    /// Each prefix, with its owners and the cost of the last link.
    prefixes: BTreeMap<IpNet, Vec<(NodeId, u32)>>,
    /// `costs[to][from]`; empty if `to` does not own a prefix.
    costs: Vec<Vec<Option<u64>>>,
}

/// Interned sets of interfaces. There are far fewer sets than prefixes, so each is stored once, by
/// index.
#[derive(Default)]
struct Sets {
    sets: Vec<BTreeSet<usize>>,
    numbers: BTreeMap<BTreeSet<usize>, usize>,
}

impl Sets {
    fn number(&mut self, set: BTreeSet<usize>) -> usize {
        let Self { sets, numbers } = self;
        *numbers.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            sets.len() - 1
        })
    }
}

impl Routes {
    /// Shortest paths over all routers, for static routes.
    pub fn of_all(topology: &Topology, ipv6: bool) -> Self {
        Self::of(topology, ipv6, Metric::Cost, |node| node.is_router())
    }

    /// Shortest paths over the routers that run a protocol for the family, by the protocol's
    /// metric.
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
        let mut costs = vec![Vec::new(); topology.nodes.len()];
        for &(owner, _) in prefixes.values().flatten() {
            let of_owner = &mut costs[owner.index()];
            if of_owner.is_empty() {
                *of_owner = igp::costs_to(&graph, owner);
            }
        }
        Self { ipv6, graph, prefixes, costs }
    }

    /// Every prefix that is remote to the node at `node`, with the interfaces of all shortest paths
    /// to it.
    pub fn from_node(&self, node: usize) -> Vec<Destination> {
        let mut sets = Sets::default();
        let routes = self.numbered(node, &mut sets);
        routes.into_iter().map(|(prefix, set)| (prefix, sets.sets[set].clone())).collect()
    }

    /// The same in prefix order, with indexes of interface sets.
    fn numbered(&self, node: usize, sets: &mut Sets) -> Vec<(IpNet, usize)> {
        let from = NodeId(node as u32);
        // Cost and interfaces towards each owner of prefixes, computed once.
        let mut towards: Vec<Option<Option<(u64, usize)>>> = vec![None; self.costs.len()];
        let mut way = |owner: NodeId, sets: &mut Sets| {
            *towards[owner.index()].get_or_insert_with(|| {
                let costs = &self.costs[owner.index()];
                let cost = costs[node]?;
                let arcs = igp::next_arcs(&self.graph, from, owner, costs);
                // A port's number is its interface's index, as assigned by `graph`.
                let ports = arcs.map(|arc| self.graph.arc(arc).port.index()).collect();
                Some((cost, sets.number(ports)))
            })
        };
        let mut routes = Vec::with_capacity(self.prefixes.len());
        for (prefix, owners) in &self.prefixes {
            if owners.iter().any(|(owner, _)| *owner == from) {
                continue;
            }
            let mut best: Option<(u64, usize)> = None;
            for &(owner, last) in owners {
                let Some((cost, set)) = way(owner, sets) else { continue };
                let cost = cost + u64::from(last);
                best = match best {
                    Some((least, _)) if least < cost => best,
                    Some((least, other)) if least == cost && other != set => {
                        let both = sets.sets[other].union(&sets.sets[set]).copied().collect();
                        Some((cost, sets.number(both)))
                    }
                    _ => Some((cost, set)),
                };
            }
            routes.extend(best.map(|(_, set)| (*prefix, set)));
        }
        routes
    }

    /// The static routes of a node: as [`Routes::from_node`], but adjacent prefixes with the same
    /// next hops are merged. A merged prefix covers exactly its parts.
    pub fn aggregated(&self, node: usize) -> Vec<Destination> {
        let mut sets = Sets::default();
        let longest = if self.ipv6 { 128 } else { 32 };
        let mut by_length: Vec<Vec<(IpNet, usize)>> = vec![Vec::new(); longest + 1];
        for route in self.numbered(node, &mut sets) {
            by_length[usize::from(route.0.prefix_len())].push(route);
        }
        let mut merged = Vec::new();
        for length in (1..=longest).rev() {
            let mut routes = std::mem::take(&mut by_length[length]);
            routes.sort_unstable();
            let given = by_length[length - 1].len();
            let mut rest = routes.as_slice();
            while let [route, behind @ ..] = rest {
                rest = behind;
                let parent = route.0.supernet().expect("it is longer than nothing");
                // The two halves of a prefix are adjacent in the sort order.
                let sibling = rest.first().filter(|next| next.0.supernet() == Some(parent));
                let same = sibling.is_some_and(|sibling| sibling.1 == route.1);
                let above = &mut by_length[length - 1];
                if same && above[..given].binary_search_by_key(&parent, |route| route.0).is_err() {
                    above.push((parent, route.1));
                    rest = &rest[1..];
                } else {
                    merged.push(*route);
                }
            }
        }
        merged.append(&mut by_length[0]);
        merged.sort_unstable();
        merged.into_iter().map(|(prefix, set)| (prefix, sets.sets[set].clone())).collect()
    }
}

/// A prefix with its next hops, as interface index and neighbor address.
pub type StaticRoute = (IpNet, Vec<(usize, IpAddr)>);

impl Routes {
    /// The static routes of a node, with their next hops.
    pub fn static_routes(&self, topology: &Topology, node: usize) -> Vec<StaticRoute> {
        let hop = |index: usize| {
            // On a LAN use the first router in the file's order as the next hop for all others.
            let peer = topology.nodes[node].interfaces[index].adjacencies.first()?;
            let peer = &topology.nodes[peer.node].interfaces[peer.interface];
            let (v4, v6) = (IpAddr::V4(peer.ipv4.addr()), IpAddr::V6(peer.ipv6.addr()));
            Some((index, if self.ipv6 { v6 } else { v4 }))
        };
        let route = |(prefix, by): Destination| (prefix, by.into_iter().filter_map(hop).collect());
        self.aggregated(node).into_iter().map(route).collect()
    }
}

/// Source of a node's routes of one address family.
pub fn routing(node: &Node, ipv6: bool) -> Routing {
    if ipv6 { node.ipv6_routing } else { node.ipv4_routing }
}

/// A path metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Metric {
    /// Sum of the links' costs.
    Cost,
    /// Number of links.
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

/// The graph of the routers and their links. A port's number is its interface's index.
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

/// The prefixes that a router originates: those of its links, loopback and locator, and external
/// ones.
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
        topology_file::parse("ring", &text).unwrap()
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
        // The link on the far side, r1-r2, is reached over r1 only: the path over r2 is longer.
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
