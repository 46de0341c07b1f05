//! A network that is fully known: every name, address, locator, cost and MTU.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attachment::{Attachment, Means};
use super::backend::Backend;
use super::events::Event;
use super::functions::Function;
use super::impairments::Impairments;
use super::test::Test;
use super::timers::Timers;
use super::units::Queue;
use crate::name::split_parallel;
use crate::{Application, Bandwidth, Locator, SegmentList, Sid, function};

/// What a link's devices carry above the inner MTU where SRv6 is spoken: the outer IPv6 header,
/// the SRH's fixed part (RFC 8754 section 2), and the longest segment list.
pub const SRV6_HEADROOM: u16 = 40 + 8 + 16 * SegmentList::MAX as u16;

/// A lab's network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// The lab's name.
    pub name: String,
    /// What random choices start from.
    pub seed: Option<u64>,
    /// The inner MTU: the largest packet that hosts send, without SRv6's headers. Host routes
    /// carry it, so that encapsulation never fragments.
    pub mtu: u16,
    /// The timers of routing protocols.
    #[serde(flatten)]
    pub timers: Timers,
    /// The block that all locators are in.
    pub srv6_block: Ipv6Net,
    /// The nodes, in the file's order; indices into this list name nodes elsewhere.
    pub nodes: Vec<Node>,
    /// Links and LANs, in the file's order; indices into this list name segments elsewhere.
    pub segments: Vec<Segment>,
    /// Whether a controller and the nodes' daemons run.
    pub controller: bool,
    /// The applications, in the file's order.
    pub applications: Vec<Application>,
    /// What happens to links, in the file's order.
    pub events: Vec<Event>,
    /// What must hold in the running lab, in the file's order.
    pub tests: Vec<Test>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The node's name, unique in its lab.
    pub name: String,
    /// What the node is.
    pub kind: NodeKind,
    /// What of this machine it stands for.
    pub attachment: Option<Attachment>,
    /// Where its IPv4 routes come from; `Static` for hosts.
    pub ipv4_routing: Routing,
    /// Where its IPv6 routes come from; `Static` for hosts.
    pub ipv6_routing: Routing,
    /// The autonomous system, where BGP runs.
    pub asn: Option<u32>,
    /// A router's IPv4 address that no link's failure takes away.
    pub loopback4: Option<Ipv4Addr>,
    /// A router's IPv6 address that no link's failure takes away.
    pub loopback6: Option<Ipv6Addr>,
    /// The prefix of an SRv6 router's SIDs.
    pub locator: Option<Locator>,
    /// What runs its SRv6; XDP only where there is a locator.
    pub dataplane: Dataplane,
    /// Lines that are added to FRR's configuration.
    pub extra_config: Option<String>,
    /// The service functions, in the file's order; only where XDP runs the SRv6.
    pub functions: Vec<Function>,
    /// The interfaces in the order of their segments, without `lo`.
    pub interfaces: Vec<Interface>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// It forwards nothing: a plain namespace, or what is behind an attached interface.
    Host,
    /// It forwards.
    Router(RouterKind),
}

/// What makes a router's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RouterKind {
    /// FRR's daemons.
    Frr,
    /// Nothing but the lab's static routes.
    Linux,
    /// The same, in the emulator: the router has no namespace, and no kernel.
    Virtual,
}

/// What forwards a node's SRv6 packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dataplane {
    /// The kernel's seg6.
    #[default]
    Kernel,
    /// XDP programs, which take the kernel's SRv6 routes over.
    Xdp,
}

impl Dataplane {
    /// As files name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Xdp => "xdp",
        }
    }
}

/// Where the routes of one address family come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// From the lab, which computes them.
    Static,
    /// From OSPFv2 (IPv4) or OSPFv3 (IPv6).
    Ospf,
    /// From IS-IS, which routes both families.
    Isis,
    /// From RIP (IPv4) or RIPng (IPv6).
    Rip,
    /// From BGP, which routes both families.
    Bgp,
}

/// A node's end of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// The device's name: the peer's (`r2`, and `r2_2` on the second parallel link), or the LAN's.
    pub name: String,
    /// The index of its segment.
    pub segment: usize,
    /// Its address, with the segment's prefix length.
    pub ipv4: Ipv4Net,
    /// Its address, with the segment's prefix length.
    pub ipv6: Ipv6Net,
    /// The device's MTU: the segment's inner MTU, and [`SRV6_HEADROOM`] if the lab speaks SRv6.
    pub mtu: u16,
    /// The IGP's cost of sending here.
    pub cost: u16,
    /// The rate limit of sending here.
    pub rate: Option<Bandwidth>,
    /// What waits in front of the rate limit.
    pub queue: Queue,
    /// What else happens to what is sent here.
    pub impairments: Impairments,
    /// What carries the segment's packets; the kernel's own links do rates, and nothing else.
    pub backend: Backend,
    /// The routers at the segment's other ends; empty on a host's interface.
    pub adjacencies: Vec<Adjacency>,
}

/// A router's neighbour over one of its interfaces; a host is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Adjacency {
    /// The neighbour's node index.
    pub node: usize,
    /// The interface's index at the neighbour.
    pub interface: usize,
    /// The adjacency's number at this node, from 0 over all its interfaces.
    pub number: u16,
}

/// A link or a LAN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// `r1-r2`, `r1-r2_2` for the second parallel link, or the LAN's name.
    pub name: String,
    /// What the segment is.
    pub kind: SegmentKind,
    /// The ends: two of a link in the file's order, two or more of a LAN.
    pub ends: Vec<End>,
    /// The prefix of its IPv4 addresses.
    pub ipv4: Ipv4Net,
    /// The prefix of its IPv6 addresses.
    pub ipv6: Ipv6Net,
}

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentKind {
    /// A cable between two nodes.
    PointToPoint,
    /// A bridge.
    Lan,
}

/// One end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    /// The node's index.
    pub node: usize,
    /// The interface's index at the node.
    pub interface: usize,
}

impl Node {
    /// Whether the node is a host.
    pub fn is_host(&self) -> bool {
        self.kind == NodeKind::Host
    }

    /// Whether the node is a router.
    pub fn is_router(&self) -> bool {
        !self.is_host()
    }

    /// Whether the node is a namespace of this machine, where programs can run.
    pub fn has_namespace(&self) -> bool {
        self.attachment.is_none() && !self.is_virtual()
    }

    /// Whether the node is a router of the emulator's.
    pub fn is_virtual(&self) -> bool {
        self.kind == NodeKind::Router(RouterKind::Virtual)
    }

    /// Whether the node is an interface of this machine whose frames are taken.
    pub fn takes_frames(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| attachment.means == Means::Frames)
    }

    /// What is behind the node, beyond its links.
    pub fn prefixes(&self) -> &[IpNet] {
        match self.attachment.as_ref().map(|attachment| &attachment.means) {
            Some(Means::Queue { prefixes, .. }) => prefixes,
            _ => &[],
        }
    }

    /// Whether FRR runs on the node.
    pub fn runs_frr(&self) -> bool {
        self.kind == NodeKind::Router(RouterKind::Frr)
    }

    /// Whether XDP programs run the node's SRv6.
    pub fn runs_xdp(&self) -> bool {
        self.dataplane == Dataplane::Xdp
    }

    /// The address that others know the node by: a router's loopback, or that of its first link.
    pub fn address(&self, ipv6: bool) -> Option<IpAddr> {
        let loopback =
            if ipv6 { self.loopback6.map(IpAddr::V6) } else { self.loopback4.map(IpAddr::V4) };
        loopback.or_else(|| {
            let interface = self.interfaces.first()?;
            Some(if ipv6 { interface.ipv6.addr().into() } else { interface.ipv4.addr().into() })
        })
    }

    /// The interface with this name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The SID that steers a packet over an adjacency of this node (RFC 8986 section 4.2); none
    /// without a locator.
    pub fn end_x(&self, adjacency: &Adjacency) -> Option<Sid> {
        Some(self.locator?.sid(function::END_X_FIRST + adjacency.number))
    }
}

impl Topology {
    /// The node with this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The index of the node with this name.
    pub fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The link or LAN with this name; a link's ends may be named in either order.
    pub fn segment(&self, name: &str) -> Option<&Segment> {
        self.segment_index(name).map(|index| &self.segments[index])
    }

    /// The index of the link or LAN with this name; a link's ends may be named in either order.
    pub fn segment_index(&self, name: &str) -> Option<usize> {
        let wanted = SegmentName::of(name);
        self.segments.iter().position(|segment| SegmentName::of(&segment.name) == wanted)
    }

    /// Whether any node speaks SRv6.
    pub fn has_srv6(&self) -> bool {
        self.nodes.iter().any(|node| node.locator.is_some())
    }

    /// Whether a segment's packets go through the emulator.
    pub fn is_emulated(&self, segment: &Segment) -> bool {
        let interface = |end: &End| &self.nodes[end.node].interfaces[end.interface];
        segment.ends.iter().any(|end| interface(end).backend == Backend::Emulator)
    }

    /// Whether any segment's packets go through the emulator.
    pub fn has_emulated(&self) -> bool {
        self.segments.iter().any(|segment| self.is_emulated(segment))
    }

    /// The nodes at the other ends of a node's links, one for each link.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = &Node> {
        let interfaces = self.nodes[node].interfaces.iter();
        interfaces
            .flat_map(move |interface| self.peers(interface, node))
            .map(|end| &self.nodes[end.node])
    }

    /// The ends of a node's interface's segment, without that interface itself.
    pub fn peers(&self, interface: &Interface, node: usize) -> impl Iterator<Item = End> {
        let ends = self.segments[interface.segment].ends.iter();
        ends.copied().filter(move |end| end.node != node)
    }
}

/// A segment's name whose order of ends does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SegmentName<'n> {
    Lan(&'n str),
    Link(&'n str, &'n str, u32),
}

impl<'n> SegmentName<'n> {
    pub(super) fn of(name: &'n str) -> Self {
        let Some((one, other)) = name.split_once('-') else { return Self::Lan(name) };
        let (other, number) = split_parallel(other);
        Self::Link(one.min(other), one.max(other), number.unwrap_or(1))
    }
}
