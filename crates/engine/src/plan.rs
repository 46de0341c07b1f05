//! Which of a lab's links are emulated, as a network between devices.

use std::net::IpAddr;

use emulator::router::{Interface, Route, Router};
use emulator::{LinkId, Network, NodeId, PortId, Switch};
use ipnet::IpNet;
use model::topology::{Attachment, Means, Node, Segment, SegmentKind, Topology};
use wire::Mac;

use crate::describe::describe;
use crate::nodes::VirtualNode;
use crate::recordings::Recordings;
use crate::settings::Side;

/// What a lab's links start from where its file says no seed.
const SEED: u64 = 1;

/// One direction of an emulated link.
#[derive(Debug, Clone)]
pub struct Direction {
    /// The link's name, or the LAN's.
    pub link: String,
    /// The node that sends.
    pub from: String,
    /// The node at the other end; of a LAN none.
    pub to: Option<String>,
    /// The interface of the node that sends; behind a netfilter queue none.
    pub interface: Option<String>,
    /// What it does.
    pub side: Side,
    /// Where it is in the network.
    pub id: LinkId,
    /// The edge where its packets come in, by its number, if there is no virtual router.
    pub entry: Option<usize>,
    /// The edge where they go out; of a LAN the sender's, too.
    pub exit: Option<usize>,
}

impl Direction {
    /// What it does, as the topology file writes it.
    pub fn does(&self) -> String {
        describe(&self.side)
    }
}

/// What is at an edge of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlet {
    /// A device in the calling thread's namespace.
    Device(String),
    /// An interface of this machine, with its frames.
    Frames(String),
    /// An interface of this machine, with the packets that would be forwarded from it.
    Packets {
        /// The interface.
        interface: String,
        /// The address of the router behind which it is.
        router: Mac,
        /// Whether packets pass by where there is no room for them.
        bypass: bool,
    },
}

/// An emulated network, and what its parts are called.
pub struct Plan {
    /// The network.
    pub network: Network,
    /// Its edges.
    pub ports: Vec<(PortId, Outlet)>,
    /// The largest IP packet that every link has room for.
    pub mtu: u16,
    /// Its virtual routers and switches.
    pub nodes: Vec<VirtualNode>,
    /// Its links, and the ways from and to outside hosts' netfilter queues. What a LAN's switch sends has no
    /// impairments, and is not among them.
    pub directions: Vec<Direction>,
}

/// What a lab is to its emulator, beside its topology.
pub struct Surroundings<'a> {
    /// What the files hold that its links name.
    pub recordings: &'a Recordings,
    /// The device of a segment's end, both by their numbers.
    pub device: &'a dyn Fn(usize, usize) -> String,
    /// The routes of a node, by its number: where to, by which interface, to whom.
    pub routes: &'a dyn Fn(usize) -> Vec<(IpNet, usize, IpAddr)>,
}

/// The interface of a router to what is behind the attached interface that it stands for.
fn outside(node: &Node) -> usize {
    node.interfaces.len()
}

impl Plan {
    /// That of a lab.
    pub fn of(topology: &Topology, lab: &Surroundings<'_>) -> Self {
        let network = Network::new(topology.seed.unwrap_or(SEED));
        let interfaces = topology.nodes.iter().flat_map(|node| &node.interfaces);
        let mtu = interfaces.map(|interface| interface.mtu).min().unwrap_or(topology.mtu);
        let mut plan =
            Self { network, ports: Vec::new(), mtu, nodes: Vec::new(), directions: Vec::new() };
        let nodes = topology.nodes.iter().enumerate();
        let routers: Vec<Option<NodeId>> = nodes
            .map(|(at, node)| node.is_virtual().then(|| plan.add_router(at, node, lab)))
            .collect();
        for (number, segment) in topology.segments.iter().enumerate() {
            if topology.is_emulated(segment) {
                plan.add(topology, (number, segment), &routers, lab);
            }
        }
        plan
    }

    /// A router without a namespace; one that is attached has one interface more, to the outside.
    fn add_router(&mut self, at: usize, node: &Node, lab: &Surroundings<'_>) -> NodeId {
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
        let mut routes = Vec::new();
        for (prefix, interface, via) in (lab.routes)(at) {
            routes.push(Route { prefix, interface, via: Some(via) });
        }
        if node.attachment.is_some() {
            let interface = outside(node);
            interfaces.push(Interface {
                mac: mac(at, interface),
                // This machine sees to what fits: it is a router of its own.
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

    /// The two ways between a router and what is behind the attached interface that it stands for.
    fn add_outside(
        &mut self,
        inside: (NodeId, usize),
        node: &Node,
        attachment: &Attachment,
        mac: Mac,
    ) {
        let port = self.network.port();
        let edge = Some(self.ports.len());
        self.ports.push((port, Outlet::of(attachment, mac)));
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
        lab: &Surroundings<'_>,
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
                        None => Outlet::Device((lab.device)(number, at)),
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
            let side = Side::of(interface, lab.recordings);
            let settings = side.settings();
            // Not by the numbers: another link in the file changes nobody's fate.
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

impl Outlet {
    fn of(attachment: &Attachment, router: Mac) -> Self {
        let interface = attachment.interface.clone();
        match attachment.means {
            Means::Frames => Self::Frames(interface),
            Means::Queue { bypass, .. } => Self::Packets { interface, router, bypass },
        }
    }
}

/// The address of a router's interface: locally administered, the same in every run.
fn mac(node: usize, interface: usize) -> Mac {
    let [.., a, b] = node.to_be_bytes();
    let [.., c, d] = interface.to_be_bytes();
    Mac([0x02, 0x6b, a, b, c, d])
}

/// This machine, behind a router that is attached to it.
pub(crate) const MACHINE: Mac = Mac([0x02, 0x6b, 0xff, 0xff, 0xff, 0xff]);
