//! The forwarding state of a data plane, with all names resolved: ports by index, tenants by
//! number.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use model::dataplane::Health;
use netlink::Mac;
use srv6::{Flavors, Form, Kind, LookUp, SegmentList, SessionArgs};

/// A map with up to millions of entries. Its keys come from the operator's file, not from an
/// attacker, so that a fast hash is sufficient (SipHash took a tenth of the time of an `apply`).
pub type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Number of a tenant, from 1.
pub type TenantId = u32;

/// The complete state of the program. An `apply` changes one state to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    /// Outer source address of all packets that the headend encapsulates.
    pub source: Ipv6Addr,
    /// Prefixes of this node's SIDs, as given in its file.
    pub locators: Vec<Ipv6Net>,
    /// Permitted source prefixes of tenants' packets and, without a tenant, of packets to SIDs. A
    /// tenant without prefixes may send from all sources.
    pub sources: BTreeSet<(Option<TenantId>, IpNet)>,
    /// The interfaces that the program is attached to and sends on, by index.
    pub ports: BTreeMap<u32, Port>,
    /// Ports of tenants and of the edge, by index, on which tc may miss packets that a sender on this
    /// machine has redirected: netfilter drops packets for the kernel that lack the mark of the
    /// filter at tc ingress.
    pub guarded_ports: BTreeSet<u32>,
    /// Tunnels that are not ports, by index, with their names. Packets from outside of the domain may
    /// arrive in them; the filters of ports see the outer headers only.
    pub tunnels: BTreeMap<u32, String>,
    /// Interfaces stacked on ports, by index: packets routed to them leave through the port, tagged.
    pub uppers: BTreeMap<u32, Upper>,
    /// Interfaces that receive tagged frames of ports, by index, whatever the protocols of the tags:
    /// a frame's attachment does not depend on them.
    pub vlans: BTreeMap<u32, VlanInterface>,
    /// Owners of tagged frames.
    pub attachments: BTreeMap<Attachment, Owner>,
    /// VLAN interfaces in the SR domain, by index: SIDs are reached in the frames that they receive.
    pub domain_vlans: BTreeMap<u32, DomainVlan>,
    /// Endpoint behaviors, by SID.
    pub sids: Map<Ipv6Net, Endpoint>,
    /// Policies of tenants' destinations.
    pub prefixes: Map<(TenantId, IpNet), PolicyId>,
    /// The policies that prefixes refer to.
    pub policies: Map<PolicyId, Policy>,
}

impl Forwarding {
    /// True if packets leave by this interface: it is a port, or stacked on one.
    pub fn has_interface(&self, index: u32) -> bool {
        self.ports.contains_key(&index) || self.uppers.contains_key(&index)
    }

    /// Returns the interfaces whose packets for the kernel are filtered, by index, with their names.
    pub fn filtered(&self) -> BTreeMap<u32, String> {
        let ports = self.ports.iter().map(|(index, port)| (*index, port.name.clone()));
        ports.chain(self.tunnels.clone()).collect()
    }

    /// Returns the tags of a port's VLANs in the SR domain, in order.
    pub fn domain_tags(&self, port: u32) -> Vec<Tags> {
        let of_port = self.domain_vlans.values().filter(|vlan| vlan.frames.port == port);
        let mut tags: Vec<Tags> = of_port.map(|vlan| vlan.frames.tags).collect();
        tags.sort_unstable();
        tags
    }

    /// Returns the permitted source prefixes of a tenant or, for none, of packets to SIDs; none if all
    /// sources are permitted.
    pub fn sources_of(&self, tenant: Option<TenantId>) -> impl Iterator<Item = IpNet> {
        self.sources.iter().filter(move |(of, _)| *of == tenant).map(|(_, net)| *net)
    }
}

impl Default for Forwarding {
    fn default() -> Self {
        Self {
            source: Ipv6Addr::UNSPECIFIED,
            locators: Vec::new(),
            sources: BTreeSet::new(),
            ports: BTreeMap::new(),
            guarded_ports: BTreeSet::new(),
            tunnels: BTreeMap::new(),
            uppers: BTreeMap::new(),
            vlans: BTreeMap::new(),
            attachments: BTreeMap::new(),
            domain_vlans: BTreeMap::new(),
            sids: Map::default(),
            prefixes: Map::default(),
            policies: Map::default(),
        }
    }
}

/// An interface of the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Name of the interface, for messages.
    pub name: String,
    /// MAC address. Frames to other addresses are left to the kernel.
    pub mac: Mac,
    /// Owner of untagged frames.
    pub owner: Owner,
    /// Interface that packets for the port are redirected to instead.
    pub exit: Option<u32>,
    /// True if packets received here cannot reach the SIDs of this node: the port belongs to a
    /// tenant, by the file or by its VRF, and not to the SRv6 network (RFC 8986 section 9).
    pub closed: bool,
    /// True at the edge of the SR domain: packets to SIDs are dropped.
    pub edge: bool,
    /// True if the kernel drops segment routing headers without an HMAC here (`seg6_require_hmac`).
    /// The program then leaves them to the kernel.
    pub requires_hmac: bool,
}

/// An interface stacked on a port, such as a VLAN interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper {
    /// Index of the port.
    pub port: u32,
    /// Tags that frames get.
    pub tags: Tags,
}

/// A VLAN interface on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanInterface {
    /// The frames that it receives.
    pub frames: Attachment,
    /// MAC addresses other than the port's to which the kernel accepts these frames: its own, and
    /// that of the interface of the outer tag.
    pub macs: Vec<Mac>,
    /// True if it is in a VRF, where rules have no effect.
    pub is_in_vrf: bool,
}

/// A VLAN interface in the SR domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainVlan {
    /// Name of the interface, for messages.
    pub name: String,
    /// The frames that it receives.
    pub frames: Attachment,
    /// MAC address. Frames to other addresses are left to the kernel.
    pub mac: Mac,
    /// True if packets received here cannot reach SIDs: the interface is in a VRF, or down.
    pub closed: bool,
    /// True if the kernel drops segment routing headers without an HMAC here (`seg6_require_hmac`).
    pub requires_hmac: bool,
}

/// VLAN tags; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tags {
    /// The outer, or only, tag.
    pub outer: u16,
    /// The inner of two tags.
    pub inner: u16,
}

/// `100`, or `200/10` with two tags.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { outer, inner: 0 } => write!(f, "{outer}"),
            Self { outer, inner } => write!(f, "{outer}/{inner}"),
        }
    }
}

/// Frames of a port with certain tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// Index of the port.
    pub port: u32,
    /// Tags of the frames.
    pub tags: Tags,
}

/// Highest number of the tenants that stand for routing tables of the kernel. They start at 1;
/// those of a file follow.
pub const TABLE_TENANTS: TenantId = 64;

/// Owner of frames.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// The kernel.
    #[default]
    Nobody,
    /// A tenant, whose prefixes steer IPv4 and IPv6 packets (H.Encaps).
    Tenant(TenantId),
    /// A policy, into which whole frames are steered (H.Encaps.L2).
    Frames(PolicyId),
}

impl Owner {
    /// Returns true for a tenant of the file, which is outside of the SR domain.
    pub(crate) fn is_of_file(&self) -> bool {
        match self {
            Self::Nobody => false,
            // Other numbers stand for tables of the kernel.
            Self::Tenant(tenant) => *tenant > TABLE_TENANTS,
            Self::Frames(_) => true,
        }
    }
}

/// An endpoint behavior with interfaces by index and policies by identity.
pub type Behavior = srv6::Behavior<u32, LookUp, PolicyId, Arc<ProxyLink>>;

/// The path to a service function behind an interface (End.AS, End.AD, End.AM).
pub type Proxy = srv6::Proxy<Arc<ProxyLink>>;

/// The treatment of packets to a SID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The behavior and its arguments.
    pub behavior: Behavior,
    /// Flavors.
    pub flavors: Flavors,
    /// VLAN tags of decapsulated packets; if none, the route determines them.
    pub tags: Tags,
    /// Health check of the function.
    pub health: Option<Arc<Health>>,
    /// True if the kernel has this SID too. It then gets the packets that the program does not
    /// handle.
    pub in_kernel: bool,
}

impl Endpoint {
    /// Creates an endpoint without flavors and tags, which the kernel does not have.
    pub fn new(behavior: Behavior) -> Self {
        let (flavors, tags) = (Flavors::default(), Tags::default());
        Self { behavior, flavors, tags, health: None, in_kernel: false }
    }

    /// Returns true for a service function, for which the kernel has no counterpart.
    pub fn is_function(&self) -> bool {
        self.behavior.kind().info().is_function
    }

    /// Returns true for a service function in this node's netfilter.
    pub fn is_netfilter(&self) -> bool {
        self.behavior.kind() == Kind::EndAnNf
    }
}

/// An interface that leads to a function, with its current state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyLink {
    /// Name.
    pub name: Arc<str>,
    /// Index; none while it does not exist.
    pub index: Option<u32>,
    /// MAC address.
    pub mac: Mac,
    /// True if it passes packets.
    pub up: bool,
}

/// Identity of a policy within its tenant; without a tenant, a SID's policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyId {
    /// A named policy, which several prefixes may refer to.
    Named(Option<TenantId>, Arc<str>),
    /// The policy of a single prefix.
    Of(Option<TenantId>, IpNet),
}

/// The weighted segment lists of a candidate path (RFC 9256).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lists, at least one. Flows are distributed over them by weight.
    pub lists: Vec<Weighted>,
    /// Encapsulation mode.
    pub form: Form,
    /// Positions of the session, for payloads of GTP-U.
    pub session: Option<SessionArgs>,
    /// True if the kernel has this policy too.
    pub in_kernel: bool,
}

/// A segment list and its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// The segments.
    pub segments: SegmentList,
    /// Weight relative to the other lists; not 0.
    pub weight: u32,
}
