//! The traffic-engineering database: the nodes' announcements and their liveness.

use std::collections::HashMap;

use model::{AnnouncedInterface, Announcement, Bandwidth};
use srv6::Sid;

use crate::graph::{Graph, GraphArc, GraphNode, NodeId, PortId};

/// Nodes and ports by name. Their IDs are stable for the life of the database.
#[derive(Debug, Default)]
pub struct Ted {
    nodes: Vec<Node>,
    node_ids: HashMap<String, NodeId>,
    ports: Vec<(NodeId, String)>,
    port_ids: HashMap<(NodeId, String), PortId>,
}

#[derive(Debug)]
struct Node {
    name: String,
    alive: bool,
    announcement: Option<Announcement>,
}

impl Ted {
    /// The ID of the node called `name`. Allocates one for a node that has not announced itself
    /// yet.
    pub fn node_id(&mut self, name: &str) -> NodeId {
        if let Some(&id) = self.node_ids.get(name) {
            return id;
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { name: name.into(), alive: false, announcement: None });
        self.node_ids.insert(name.into(), id);
        id
    }

    /// The ID of an interface.
    pub fn port_id(&mut self, node: NodeId, interface: &str) -> PortId {
        let key = (node, interface.to_owned());
        if let Some(&id) = self.port_ids.get(&key) {
            return id;
        }
        let id = PortId(self.ports.len() as u32);
        self.ports.push(key.clone());
        self.port_ids.insert(key, id);
        id
    }

    /// The ID of a known node.
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.node_ids.get(name).copied()
    }

    /// The ID of a known interface.
    pub fn find_port(&self, node: &str, interface: &str) -> Option<PortId> {
        self.port_ids.get(&(self.find_node(node)?, interface.to_owned())).copied()
    }

    /// The name of a node.
    pub fn node_name(&self, id: NodeId) -> &str {
        &self.nodes[id.index()].name
    }

    /// `node:interface` of a port.
    pub fn port_name(&self, id: PortId) -> String {
        let (node, interface) = &self.ports[id.index()];
        format!("{}:{interface}", self.node_name(*node))
    }

    /// The name of a port's interface on its node.
    pub fn interface_name(&self, id: PortId) -> &str {
        &self.ports[id.index()].1
    }

    /// The capacity of a port; None if it is unlimited.
    pub fn capacity(&self, id: PortId) -> Option<Bandwidth> {
        let (node, name) = &self.ports[id.index()];
        let announcement = self.nodes[node.index()].announcement.as_ref()?;
        announcement.interfaces.iter().find(|interface| interface.name == *name)?.capacity
    }

    /// Stores a node's announcement and marks the node alive. Returns true if anything changed.
    pub fn announce(&mut self, announcement: Announcement) -> bool {
        let id = self.node_id(&announcement.node);
        for interface in &announcement.interfaces {
            self.port_id(id, &interface.name);
            for adjacency in &interface.adjacencies {
                self.node_id(&adjacency.neighbor);
            }
        }
        let node = &mut self.nodes[id.index()];
        let changed = !node.alive || node.announcement.as_ref() != Some(&announcement);
        node.alive = true;
        node.announcement = Some(announcement);
        changed
    }

    /// Marks a node alive or dead. Returns true if that is a change.
    pub fn set_alive(&mut self, node: &str, alive: bool) -> bool {
        match self.find_node(node) {
            Some(id) => std::mem::replace(&mut self.nodes[id.index()].alive, alive) != alive,
            None => false,
        }
    }

    /// Marks an interface up or down. Returns true if that is a change.
    pub fn set_port_up(&mut self, node: &str, interface: &str, up: bool) -> bool {
        let Some(id) = self.find_node(node) else { return false };
        let Some(announcement) = &mut self.nodes[id.index()].announcement else { return false };
        match announcement.interfaces.iter_mut().find(|i| i.name == interface) {
            Some(found) => std::mem::replace(&mut found.up, up) != up,
            None => false,
        }
    }

    /// Marks a service function up or down. Returns true if that is a change.
    pub fn set_function_up(&mut self, node: &str, function: &str, up: bool) -> bool {
        let Some(id) = self.find_node(node) else { return false };
        let Some(announcement) = &mut self.nodes[id.index()].announcement else { return false };
        match announcement.functions.iter_mut().find(|found| found.name == function) {
            Some(found) => std::mem::replace(&mut found.up, up) != up,
            None => false,
        }
    }

    /// Sets the capacity of an interface. Returns true if that is a change.
    pub fn set_capacity(
        &mut self,
        node: &str,
        interface: &str,
        capacity: Option<Bandwidth>,
    ) -> bool {
        let Some(id) = self.find_node(node) else { return false };
        let Some(announcement) = &mut self.nodes[id.index()].announcement else { return false };
        match announcement.interfaces.iter_mut().find(|i| i.name == interface) {
            Some(found) => std::mem::replace(&mut found.capacity, capacity) != capacity,
            None => false,
        }
    }

    /// Returns true if the node is alive.
    pub fn is_alive(&self, node: &str) -> bool {
        self.find_node(node).is_some_and(|id| self.nodes[id.index()].alive)
    }

    /// Returns true if at least one node is known and all known nodes are alive.
    pub fn is_complete(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(|node| node.alive)
    }

    /// The announcements of all nodes, each with the node's liveness, in the order in which the
    /// nodes were first mentioned.
    pub fn announcements(&self) -> impl Iterator<Item = (&Announcement, bool)> {
        self.nodes.iter().filter_map(|node| Some((node.announcement.as_ref()?, node.alive)))
    }

    /// The announcement of the node called `name`.
    pub fn announcement(&self, name: &str) -> Option<&Announcement> {
        self.nodes[self.find_node(name)?.index()].announcement.as_ref()
    }

    /// A snapshot of the topology as the IGP sees it now. An arc requires that its port is up, and
    /// that the neighbor also has the sender as a neighbor on a port that is up (the IGP's
    /// two-way check). Applications use an arc only if both ends are alive.
    pub fn graph(&self) -> Graph {
        let nodes = self
            .nodes
            .iter()
            .map(|node| GraphNode {
                name: node.name.clone(),
                transit: node.announcement.as_ref().is_some_and(|a| a.transit),
                sids: node.announcement.as_ref().and_then(|a| a.sids),
                functions: functions(node),
            })
            .collect();
        let mut arcs = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let from = NodeId(at as u32);
            for interface in up_interfaces(node) {
                for adjacency in &interface.adjacencies {
                    let to = self.node_ids[&adjacency.neighbor];
                    if !self.sees(to, &node.name) {
                        continue;
                    }
                    arcs.push(GraphArc {
                        from,
                        to,
                        port: self.port_ids[&(from, interface.name.clone())],
                        // Routing protocols do not allow a cost of zero; packets could loop on it.
                        cost: adjacency.cost.max(1),
                        capacity: interface.capacity,
                        end_x: adjacency.end_x,
                        usable: node.alive && self.nodes[to.index()].alive,
                    });
                }
            }
        }
        Graph::new(nodes, arcs)
    }

    fn sees(&self, node: NodeId, neighbor: &str) -> bool {
        up_interfaces(&self.nodes[node.index()])
            .any(|i| i.adjacencies.iter().any(|a| a.neighbor == neighbor))
    }
}

/// The functions that are up, if the node is alive.
fn functions(node: &Node) -> Vec<(String, Sid)> {
    let announced = node.announcement.iter().filter(|_| node.alive);
    let up = announced.flat_map(|a| a.functions.iter().filter(|function| function.up));
    up.map(|function| (function.name.clone(), function.sid)).collect()
}

fn up_interfaces(node: &Node) -> impl Iterator<Item = &AnnouncedInterface> {
    node.announcement.iter().flat_map(|a| a.interfaces.iter().filter(|i| i.up))
}

#[cfg(test)]
mod tests {
    use model::Adjacency;

    use super::*;

    /// A router with one interface per neighbor, named after it.
    fn router(name: &str, neighbors: &[&str]) -> Announcement {
        let interface = |neighbor: &&str| AnnouncedInterface {
            name: format!("to-{neighbor}"),
            capacity: Some(Bandwidth::from_mbps(100)),
            up: true,
            adjacencies: vec![Adjacency { neighbor: (*neighbor).into(), cost: 0, end_x: None }],
        };
        Announcement {
            node: name.into(),
            transit: true,
            sids: None,
            addresses: Vec::new(),
            functions: Vec::new(),
            interfaces: neighbors.iter().map(interface).collect(),
        }
    }

    fn arcs(ted: &Ted) -> Vec<String> {
        let graph = ted.graph();
        let usable = graph.arcs().filter(|(_, arc)| arc.usable);
        usable.map(|(_, arc)| ted.port_name(arc.port)).collect()
    }

    #[test]
    fn a_link_is_there_once_both_ends_have_announced_it() {
        let mut ted = Ted::default();
        assert!(ted.announce(router("r1", &["r2", "r3"])));
        assert_eq!(arcs(&ted), [""; 0]);
        ted.announce(router("r2", &["r1"]));
        ted.announce(router("r3", &[]));
        assert_eq!(arcs(&ted), ["r1:to-r2", "r2:to-r1"]);
        assert!(!ted.announce(router("r2", &["r1"])), "nothing new");
    }

    #[test]
    fn dead_nodes_and_ports_without_carrier_have_no_usable_arcs_and_keep_their_ids() {
        let mut ted = Ted::default();
        ted.announce(router("r1", &["r2"]));
        ted.announce(router("r2", &["r1"]));
        let (node, port) = (ted.find_node("r2"), ted.find_port("r2", "to-r1"));
        assert!(ted.set_alive("r2", false) && !ted.set_alive("r2", false));
        assert_eq!(arcs(&ted), [""; 0]);
        assert_eq!(ted.graph().arcs().count(), 2, "the IGP may still use them");
        assert!(ted.announce(router("r2", &["r1"])));
        assert_eq!(arcs(&ted).len(), 2);
        assert!(ted.set_port_up("r1", "to-r2", false));
        assert_eq!(arcs(&ted), [""; 0], "the other direction is gone as well");
        assert_eq!((ted.find_node("r2"), ted.find_port("r2", "to-r1")), (node, port));
        assert!(!ted.set_port_up("r1", "eth7", true) && !ted.set_alive("r7", true));
    }

    #[test]
    fn capacities_change_and_no_cost_is_zero() {
        let mut ted = Ted::default();
        ted.announce(router("r1", &["r2"]));
        ted.announce(router("r2", &["r1"]));
        assert!(ted.graph().arcs().all(|(_, arc)| arc.cost == 1));
        let more = Some(Bandwidth::from_mbps(200));
        assert!(ted.set_capacity("r1", "to-r2", more) && !ted.set_capacity("r1", "to-r2", more));
        assert_eq!(ted.capacity(ted.find_port("r1", "to-r2").unwrap()), more);
        assert_eq!(ted.graph().arc(crate::ArcId(0)).capacity, more);
    }
}
