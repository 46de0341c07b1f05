//! The emulated links of a lab, as a network between devices.

use std::net::IpAddr;

use emulator::router::{Interface, Route, Router};
use emulator::{LinkId, Network, NodeId, PortId, Switch};
use ipnet::IpNet;
use model::topology::{Attachment, Means, Node, Segment, SegmentKind, Topology};
use pathfinder::{Routes, StaticRoute};
use wire::Mac;

use crate::describe::describe;
use crate::nodes::VirtualNode;
use crate::recordings::Recordings;
use crate::settings::Side;

/// Default seed, for topology files without one.
const SEED: u64 = 1;

/// One direction of an emulated link.
#[derive(Debug, Clone)]
pub struct Direction {
    /// Name of the link or LAN.
    pub link: String,
    /// The sending node.
    pub from: String,
    /// The receiving node; `None` for a LAN.
    pub to: Option<String>,
    /// Interface of the sending node; `None` behind a netfilter queue.
    pub interface: Option<String>,
    /// Settings.
    pub side: Side,
    /// Link in the network.
    pub id: LinkId,
    /// Index of the edge at which its packets enter; `None` at a virtual router.
    pub entry: Option<usize>,
    /// Index of the edge at which its packets leave. For a LAN, this is the sender's edge.
    pub exit: Option<usize>,
}

impl Direction {
    /// Returns the settings in the syntax of the topology file.
    pub fn does(&self) -> String {
        describe(&self.side)
    }
}

/// Device at an edge of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlet {
    /// A device in the calling thread's namespace.
    Device(String),
    /// An interface of this machine, at frame level.
    Frames(String),
    /// An interface of this machine, for the packets that would be forwarded from it.
    Packets {
        /// Interface name.
        interface: String,
        /// MAC address of the router attached to it.
        router: Mac,
        /// True if packets bypass the queue when it is full.
        bypass: bool,
    },
}

/// An emulated network with the names of its parts.
pub struct Plan {
    /// The network.
    pub network: Network,
    /// Edges of the network.
    pub ports: Vec<(PortId, Outlet)>,
    /// The largest IP packet that fits on every link.
    pub mtu: u16,
    /// Virtual routers and switches.
    pub nodes: Vec<VirtualNode>,
    /// Links, and the directions to and from outside hosts' netfilter queues. The output of a LAN's
    /// switch has no impairments and is not included.
    pub directions: Vec<Direction>,
}

/// Returns the name of the emulator's device for a segment's end, given the indices of both.
pub fn device_name(segment: usize, end: usize) -> String {
    format!("e{segment}-{end}")
}

/// Index of a router's interface towards the hosts behind its attached interface.
fn outside(node: &Node) -> usize {
    node.interfaces.len()
}

impl Plan {
    /// Creates the plan of a lab, given the contents of the files that its links refer to.
    pub fn new(topology: &Topology, recordings: &Recordings) -> Self {
        let shortest = [false, true].map(|ipv6| Routes::of_all(topology, ipv6));
        Self::with_routes(topology, recordings, &shortest)
    }

    /// Creates the same plan with routers that have no routes, to look at its links. The routes of many
    /// routers take memory that grows with the square of their number.
    pub fn without_routes(topology: &Topology, recordings: &Recordings) -> Self {
        Self::with_routes(topology, recordings, &[])
    }

    fn with_routes(topology: &Topology, recordings: &Recordings, shortest: &[Routes]) -> Self {
        let network = Network::new(topology.seed.unwrap_or(SEED));
        let interfaces = topology.nodes.iter().flat_map(|node| &node.interfaces);
        let mtu = interfaces.map(|interface| interface.mtu).min().unwrap_or(topology.mtu);
        let mut plan =
            Self { network, ports: Vec::new(), mtu, nodes: Vec::new(), directions: Vec::new() };
        let nodes = topology.nodes.iter().enumerate();
        let routers: Vec<Option<NodeId>> = nodes
            .map(|(at, node)| {
                node.is_virtual()
                    .then(|| plan.add_router(at, node, static_routes(topology, shortest, at)))
            })
            .collect();
        for (number, segment) in topology.segments.iter().enumerate() {
            if topology.is_emulated(segment) {
                plan.add(topology, (number, segment), &routers, recordings);
            }
        }
        plan
    }

    /// Adds a virtual router. An attached one has an additional interface to the outside.
    fn add_router(&mut self, at: usize, node: &Node, mut routes: Vec<Route>) -> NodeId {
        let mut interfaces: Vec<Interface> = node
            .interfaces
            .iter()
            .enumerate()
            .map(|(number, interface)| Interface {
                mac: mac(at, number),
                mtu: interface.mtu,
                addresses: vec![interface.ipv4.into(), interface.ipv6.into()],
                only_peer: None,
            })
            .collect();
        if let Some(first) = interfaces.first_mut() {
            first.addresses.extend(node.loopback4.map(|address| IpNet::from(IpAddr::V4(address))));
            first.addresses.extend(node.loopback6.map(|address| IpNet::from(IpAddr::V6(address))));
        }
        if node.attachment.is_some() {
            let interface = outside(node);
            interfaces.push(Interface {
                mac: mac(at, interface),
                // This machine enforces the MTU, because it is a router itself.
                mtu: u16::MAX,
                addresses: Vec::new(),
                only_peer: Some(MACHINE),
            });
            let behind = node.prefixes().iter();
            routes.extend(behind.map(|prefix| Route { prefix: *prefix, interface, via: None }));
        }
        let router = self.network.router(Router::new(interfaces, routes));
        self.nodes.push(VirtualNode { name: node.name.clone(), id: router });
        if let Some(attachment) = &node.attachment {
            self.add_outside((router, outside(node)), node, attachment, mac(at, outside(node)));
        }
        router
    }

    /// Adds both directions between a router and the hosts behind its attached interface.
    fn add_outside(
        &mut self,
        inside: (NodeId, usize),
        node: &Node,
        attachment: &Attachment,
        mac: Mac,
    ) {
        let port = self.network.port();
        let edge = Some(self.ports.len());
        self.ports.push((port, Outlet::new(attachment, mac)));
        let end = (NodeId::from(port), 0);
        let out = self.network.link(&format!("{} out", node.name), inside, end, Default::default());
        let into = self.network.link(&format!("{} in", node.name), end, inside, Default::default());
        let (name, interface) = (node.name.clone(), attachment.interface.clone());
        let side = Side::plain();
        let link = format!("{name}@{interface}");
        for (id, from, to, entry, exit) in
            [(out, &name, &interface, None, edge), (into, &interface, &name, edge, None)]
        {
            let (link, from, to) = (link.clone(), from.clone(), Some(to.clone()));
            let (interface, side) = (None, side.clone());
            self.directions.push(Direction { link, from, to, interface, side, id, entry, exit });
        }
    }

    fn add(
        &mut self,
        topology: &Topology,
        (number, segment): (usize, &Segment),
        routers: &[Option<NodeId>],
        recordings: &Recordings,
    ) {
        let mut ends: Vec<(NodeId, usize)> = Vec::new();
        let mut edges = Vec::new();
        for (at, end) in segment.ends.iter().enumerate() {
            let router = routers[end.node];
            edges.push(router.is_none().then_some(self.ports.len()));
            ends.push(match (router, &topology.nodes[end.node].attachment) {
                (Some(router), _) => (router, end.interface),
                (None, attachment) => {
                    let port = self.network.port();
                    let outlet = match attachment {
                        Some(attachment) => Outlet::Frames(attachment.interface.clone()),
                        None => Outlet::Device(device_name(number, at)),
                    };
                    self.ports.push((port, outlet));
                    (port.into(), 0)
                }
            });
        }
        let switch = match segment.kind {
            SegmentKind::PointToPoint => None,
            SegmentKind::Lan => Some(self.network.switch(Switch::new(ends.len()))),
        };
        let named = switch.map(|id| VirtualNode { name: segment.name.clone(), id });
        self.nodes.extend(named);
        let name = |end: usize| topology.nodes[segment.ends[end].node].name.clone();
        for (number, (end, port)) in segment.ends.iter().zip(&ends).enumerate() {
            let interface = &topology.nodes[end.node].interfaces[end.interface];
            let side = Side::new(interface, recordings);
            let settings = side.settings();
            // Seed by name and not by index, so that adding a link does not change the outcomes of
            // others.
            let dice = format!("{} from {}", segment.name, name(number));
            let (to, target, exit) = match switch {
                Some(switch) => (None, (switch, number), edges[number]),
                None => (Some(name(1 - number)), ends[1 - number], edges[1 - number]),
            };
            let id = self.network.link(&dice, *port, target, settings);
            self.network.set_filters(id, side.filters());
            if let Some(switch) = switch {
                let back = format!("{} to {}", segment.name, name(number));
                self.network.link(&back, (switch, number), *port, Default::default());
            }
            let (link, from) = (segment.name.clone(), name(number));
            let (interface, entry) = (Some(interface.name.clone()), edges[number]);
            self.directions.push(Direction { link, from, to, interface, side, id, entry, exit });
        }
    }
}

/// Returns the routes of a virtual router. Of several paths it uses the first.
fn static_routes(topology: &Topology, shortest: &[Routes], node: usize) -> Vec<Route> {
    let routes = shortest.iter().flat_map(|family| family.static_routes(topology, node));
    let first = |(prefix, hops): StaticRoute| {
        let (interface, via) = *hops.first()?;
        Some(Route { prefix, interface, via: Some(via) })
    };
    routes.filter_map(first).collect()
}

impl Outlet {
    fn new(attachment: &Attachment, router: Mac) -> Self {
        let interface = attachment.interface.clone();
        match attachment.means {
            Means::Frames => Self::Frames(interface),
            Means::Queue { bypass, .. } => Self::Packets { interface, router, bypass },
        }
    }
}

/// Returns the MAC address of a router's interface: locally administered, and the same in every
/// run.
fn mac(node: usize, interface: usize) -> Mac {
    let [.., a, b] = node.to_be_bytes();
    let [.., c, d] = interface.to_be_bytes();
    Mac([0x02, 0x6b, a, b, c, d])
}

/// MAC address of this machine, as seen by a router attached to it.
pub(crate) const MACHINE: Mac = Mac([0x02, 0x6b, 0xff, 0xff, 0xff, 0xff]);
