//! A fully resolved network: all names, addresses, locators, costs and MTUs are known.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use srv6::{Locator, SegmentList, Sid, function};

use super::attachment::{Attachment, Means};
use super::backend::Backend;
use super::event::Event;
use super::function::Function;
use super::impairments::Impairments;
use super::quantity::Queue;
use super::test::Test;
use super::timers::Timers;
use crate::Tenant;
use crate::name::split_parallel;
use crate::{Application, Bandwidth};

/// Headroom of a link's devices above the inner MTU with SRv6: the outer IPv6 header, the SRH's
/// fixed part (RFC 8754 section 2), and the longest segment list.
pub const SRV6_HEADROOM: u16 = 40 + 8 + 16 * SegmentList::MAX as u16;

/// A lab's network.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Topology {
    /// Name of the lab.
    pub name: String,
    /// Seed of random choices.
    pub seed: Option<u64>,
    /// Inner MTU: size of the largest packet that hosts send, without SRv6 headers. Host routes
    /// have this MTU, so that encapsulation never causes fragmentation.
    pub mtu: u16,
    /// Timers of the routing protocols.
    #[serde(flatten)]
    pub timers: Timers,
    /// Block that contains all locators.
    pub srv6_block: Ipv6Net,
    /// Nodes, in file order. Other types refer to a node by its index in this list.
    pub nodes: Vec<Node>,
    /// Links and LANs, in file order. Other types refer to a segment by its index in this list.
    pub segments: Vec<Segment>,
    /// True if a controller and the nodes' daemons run.
    pub controller: bool,
    /// Applications, in file order.
    pub applications: Vec<Application>,
    /// Events on links, in file order.
    pub events: Vec<Event>,
    /// Conditions that must hold in the running lab, in file order.
    pub tests: Vec<Test>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Node name, unique in its lab.
    pub name: String,
    /// Kind of node.
    pub kind: NodeKind,
    /// Attachment to this machine, if the node stands for an external network.
    pub attachment: Option<Attachment>,
    /// Source of IPv4 routes; `Static` for hosts.
    pub ipv4_routing: Routing,
    /// Source of IPv6 routes; `Static` for hosts.
    pub ipv6_routing: Routing,
    /// Autonomous system, if the node runs BGP.
    pub asn: Option<u32>,
    /// IPv4 loopback address of a router, independent of its links' state.
    pub loopback4: Option<Ipv4Addr>,
    /// IPv6 loopback address of a router, independent of its links' state.
    pub loopback6: Option<Ipv6Addr>,
    /// Prefix of an SRv6 router's SIDs.
    pub locator: Option<Locator>,
    /// Data plane for SRv6; XDP only with a locator.
    pub dataplane: Dataplane,
    /// Additional lines of FRR's configuration.
    pub extra_config: Option<String>,
    /// Service functions, in file order; only with the XDP data plane.
    pub functions: Vec<Function>,
    /// Tenants whose programs judge the packets of the node's interfaces, or of a switch's ports, in
    /// file order. Their ports have the names of [`Topology::interface_names`].
    pub tenants: Vec<Tenant>,
    /// Interfaces in the order of their segments, without `lo`. A switch has none: its links are
    /// one segment, and its ports are the far ends of the other nodes' interfaces.
    pub interfaces: Vec<Interface>,
}

/// Kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// A host, which does not forward: a plain namespace, or an external network beyond an attached
    /// interface.
    Host,
    /// A router.
    Router(RouterKind),
    /// A switch with AF_XDP ports.
    Switch,
}

/// Kind of router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouterKind {
    /// A router with FRR's daemons.
    Frr,
    /// A router with the lab's static routes only.
    Linux,
    /// A router with static routes in the emulator, without a namespace and a kernel.
    Virtual,
}

/// Data plane for a node's SRv6 packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dataplane {
    /// The kernel's seg6.
    #[default]
    Kernel,
    /// XDP programs, which take over the kernel's SRv6 routes.
    Xdp,
}

impl Dataplane {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Xdp => "xdp",
        }
    }
}

/// Source of the routes of one address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// Static routes that the lab computes.
    Static,
    /// OSPFv2 (IPv4) or OSPFv3 (IPv6).
    Ospf,
    /// IS-IS, for both families.
    Isis,
    /// RIP (IPv4) or RIPng (IPv6).
    Rip,
    /// BGP, for both families.
    Bgp,
}

/// A node's end of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Interface {
    /// Device name: the peer's (`r2`, and `r2_2` for the second parallel link), or the LAN's.
    pub name: String,
    /// Index of its segment.
    pub segment: usize,
    /// IPv4 address with the segment's prefix length.
    pub ipv4: Ipv4Net,
    /// IPv6 address with the segment's prefix length.
    pub ipv6: Ipv6Net,
    /// MTU of the device: the segment's inner MTU, plus [`SRV6_HEADROOM`] if the lab uses SRv6.
    pub mtu: u16,
    /// IGP cost.
    pub cost: u16,
    /// Rate limit for transmitted packets.
    pub rate: Option<Bandwidth>,
    /// Queue at the rate limit.
    pub queue: Queue,
    /// Other impairments of transmitted packets.
    pub impairments: Impairments,
    /// Backend of the segment; kernel links support rates only.
    pub backend: Backend,
    /// Adjacent routers on the segment; empty for a host's interface.
    pub adjacencies: Vec<Adjacency>,
}

/// An adjacent router on one of a router's interfaces. Hosts are not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Adjacency {
    /// Node index of the neighbor.
    pub node: usize,
    /// Interface index at the neighbor.
    pub interface: usize,
    /// Number of the adjacency at this node, counted from 0 over all its interfaces.
    pub number: u16,
}

/// A link or a LAN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Segment {
    /// Segment name: `r1-r2`, `r1-r2_2` for the second parallel link, or the LAN's name.
    pub name: String,
    /// Kind of segment.
    pub kind: SegmentKind,
    /// The ends: two of a link in file order, two or more of a LAN.
    pub ends: Vec<End>,
    /// Prefix of its IPv4 addresses.
    pub ipv4: Ipv4Net,
    /// Prefix of its IPv6 addresses.
    pub ipv6: Ipv6Net,
    /// Node index of the switch that connects the ends of a LAN, in place of a bridge.
    pub switch: Option<usize>,
}

/// Kind of segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SegmentKind {
    /// A point-to-point link between two nodes.
    PointToPoint,
    /// A bridge or a switch.
    Lan,
}

/// An end of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct End {
    /// Node index.
    pub node: usize,
    /// Interface index at the node.
    pub interface: usize,
}

impl Node {
    /// True if the node is a host.
    pub fn is_host(&self) -> bool {
        self.kind == NodeKind::Host
    }

    /// True if the node is a router.
    pub fn is_router(&self) -> bool {
        matches!(self.kind, NodeKind::Router(_))
    }

    /// True if the node is a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeKind::Switch
    }

    /// True if tenants' programs judge packets of a host or a router.
    pub fn has_programs(&self) -> bool {
        !self.is_switch() && !self.tenants.is_empty()
    }

    /// True if a program judges the packets of this interface.
    pub fn is_judged(&self, interface: &str) -> bool {
        self.tenants.iter().flat_map(|tenant| &tenant.ports).any(|(name, _)| name == interface)
    }

    /// True if the node is a namespace of this machine, in which programs can run.
    pub fn has_namespace(&self) -> bool {
        self.attachment.is_none() && !self.is_virtual()
    }

    /// True if the node is a virtual router in the emulator.
    pub fn is_virtual(&self) -> bool {
        self.kind == NodeKind::Router(RouterKind::Virtual)
    }

    /// True if the node is an interface of this machine that is attached by frames.
    pub fn takes_frames(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| attachment.means == Means::Frames)
    }

    /// Prefixes of the external network beyond the node.
    pub fn prefixes(&self) -> &[IpNet] {
        match self.attachment.as_ref().map(|attachment| &attachment.means) {
            Some(Means::Queue { prefixes, .. }) => prefixes,
            _ => &[],
        }
    }

    /// True if FRR runs on the node.
    pub fn runs_frr(&self) -> bool {
        self.kind == NodeKind::Router(RouterKind::Frr)
    }

    /// True if XDP programs are the node's SRv6 data plane.
    pub fn runs_xdp(&self) -> bool {
        self.dataplane == Dataplane::Xdp
    }

    /// The node's primary address: a router's loopback, or the address of the first link.
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

    /// SID that steers a packet over an adjacency of this node (RFC 8986 section 4.2); none without
    /// a locator.
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
        let wanted = SegmentName::parse(name);
        self.segments.iter().position(|segment| SegmentName::parse(&segment.name) == wanted)
    }

    /// All links and LANs by name, for many lookups like [`Topology::segment`].
    pub fn segments_by_name(&self) -> SegmentsByName<'_> {
        let all = self.segments.iter();
        SegmentsByName(all.map(|one| (SegmentName::parse(&one.name), one)).collect())
    }

    /// True if any node uses SRv6.
    pub fn has_srv6(&self) -> bool {
        self.nodes.iter().any(|node| node.locator.is_some())
    }

    /// True if the emulator forwards a segment's packets.
    pub fn is_emulated(&self, segment: &Segment) -> bool {
        let interface = |end: &End| &self.nodes[end.node].interfaces[end.interface];
        segment.ends.iter().any(|end| interface(end).backend == Backend::Emulator)
    }

    /// True if the emulator forwards any segment's packets.
    pub fn has_emulated(&self) -> bool {
        self.segments.iter().any(|segment| self.is_emulated(segment))
    }

    /// Names of a node's interfaces, without `lo`. Those of a switch are its ports, which are named
    /// after the nodes that they lead to.
    pub fn interface_names(&self, node: usize) -> Vec<&str> {
        let mut segments = self.segments.iter();
        match segments.find(|segment| segment.switch == Some(node)) {
            Some(segment) => {
                segment.ends.iter().map(|end| self.nodes[end.node].name.as_str()).collect()
            }
            None => self.nodes[node].interfaces.iter().map(|one| one.name.as_str()).collect(),
        }
    }

    /// The nodes at the far ends of a node's links, one for each link.
    pub fn neighbors(&self, node: usize) -> impl Iterator<Item = &Node> {
        let interfaces = self.nodes[node].interfaces.iter();
        interfaces
            .flat_map(move |interface| self.peers(interface, node))
            .map(|end| &self.nodes[end.node])
    }

    /// The ends of the interface's segment, except that of `node`.
    pub fn peers(&self, interface: &Interface, node: usize) -> impl Iterator<Item = End> {
        let ends = self.segments[interface.segment].ends.iter();
        ends.copied().filter(move |end| end.node != node)
    }
}

/// Links and LANs by name.
#[derive(Debug)]
pub struct SegmentsByName<'t>(HashMap<SegmentName<'t>, &'t Segment>);

impl<'t> SegmentsByName<'t> {
    /// The link or LAN with this name; a link's ends may be named in either order.
    pub fn get(&self, name: &str) -> Option<&'t Segment> {
        self.0.get(&SegmentName::parse(name)).copied()
    }
}

/// Name of a segment, compared without regard to the order of its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SegmentName<'n> {
    Lan(&'n str),
    Link(&'n str, &'n str, u32),
}

impl<'n> SegmentName<'n> {
    fn parse(name: &'n str) -> Self {
        let Some((one, other)) = name.split_once('-') else { return Self::Lan(name) };
        let (other, number) = split_parallel(other);
        Self::Link(one.min(other), one.max(other), number.unwrap_or(1))
    }
}
