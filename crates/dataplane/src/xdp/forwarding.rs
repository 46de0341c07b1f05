//! What a data plane is to forward, with every name resolved: ports by index, tenants by number.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use model::SegmentList;
use model::dataplane::{Health, ProxyBehaviour};
use netlink::{Behavior, Flavors, Mac};

use super::Form;

/// A map of up to millions of entries, which the operator's file names: nobody who could flood it
/// chooses its keys, so that a fast hash does (SipHash took a tenth of an `apply`).
pub type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A tenant's number; 0 is nobody's.
pub type TenantId = u32;

/// Everything that the program is to do. Two of these differ by what an `apply` changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarding {
    /// The outer source address of every packet that the headend encapsulates.
    pub source: Ipv6Addr,
    /// Where this node's SIDs are, as its file says.
    pub locators: Vec<Ipv6Net>,
    /// The prefixes that packets of tenants may come from, and with number 0 those that packets to SIDs
    /// may come from. Of whom there is none here, all sources are good.
    pub sources: BTreeSet<(TenantId, IpNet)>,
    /// The interfaces that the program is attached to and sends by, by index.
    pub ports: BTreeMap<u32, Port>,
    /// Interfaces above ports, by index: what is routed to them leaves by the port, tagged.
    pub uppers: BTreeMap<u32, Upper>,
    /// To whom tagged frames belong.
    pub attachments: BTreeMap<Attachment, Owner>,
    /// Endpoint behaviours, by SID.
    pub sids: Map<Ipv6Net, Endpoint>,
    /// Where tenants' destinations are steered.
    pub prefixes: Map<(TenantId, IpNet), PolicyId>,
    /// The policies that prefixes name.
    pub policies: Map<PolicyId, Policy>,
}

impl Forwarding {
    /// The prefixes that packets of a tenant, or with 0 to SIDs, may come from; none for all.
    pub fn sources_of(&self, tenant: TenantId) -> impl Iterator<Item = IpNet> {
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
            uppers: BTreeMap::new(),
            attachments: BTreeMap::new(),
            sids: Map::default(),
            prefixes: Map::default(),
            policies: Map::default(),
        }
    }
}

/// An interface of the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name, for people.
    pub name: String,
    /// Its address: frames for others are the kernel's.
    pub mac: Mac,
    /// To whom frames without a tag belong.
    pub owner: Owner,
    /// The interface that packets for the port are sent into, in its place.
    pub exit: Option<u32>,
    /// Whether packets that come in here reach no SID of this node: the port is a tenant's, by the
    /// file or by its VRF, and not the SRv6 network's (RFC 8986 section 9).
    pub closed: bool,
    /// Whether the SR domain ends here: packets to SIDs are dropped.
    pub edge: bool,
    /// Whether the kernel drops segment routing headers without an HMAC here (`seg6_require_hmac`), as
    /// the program then leaves them to it.
    pub requires_hmac: bool,
}

/// An interface above a port, such as a VLAN's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper {
    /// The port's index.
    pub port: u32,
    /// The tags that frames get.
    pub tags: Tags,
}

/// VLAN tags; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tags {
    /// The outer, or only, tag.
    pub outer: u16,
    /// The inner tag of two.
    pub inner: u16,
}

/// Frames of a port with certain tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// The port's index.
    pub port: u32,
    /// The tags that frames have.
    pub tags: Tags,
}

/// To whom frames belong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Owner {
    /// The kernel.
    #[default]
    Nobody,
    /// A tenant, whose prefixes steer IPv4 and IPv6 packets (H.Encaps).
    Tenant(TenantId),
    /// A policy, which takes whole frames (H.Encaps.L2).
    Frames(PolicyId),
}

/// What one SID does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The behaviour.
    pub behavior: Behavior,
    /// Its flavours.
    pub flavors: Flavors,
    /// The tags that decapsulated packets leave with; none for those that the route says.
    pub tags: Tags,
    /// The VRF device whose table is looked up, where the behaviour names a table of a VRF.
    pub vrf: Option<u32>,
    /// The policy of End.B6.Encaps or End.AS, or that of End.AN.NF's answers.
    pub policy: Option<PolicyId>,
    /// Whether the inner packet passes netfilter before the behaviour, which is End (End.AN.NF).
    pub netfilter: bool,
    /// The proxy in front of a function behind an interface; the behaviour is End.
    pub proxy: Option<Arc<Proxy>>,
    /// How it is found out whether the function works.
    pub health: Option<Arc<Health>>,
    /// Whether the kernel has this SID too: it then gets what the program does not do itself.
    pub in_kernel: bool,
}

impl Endpoint {
    /// Whether it sends to a service function: the kernel has nothing like it.
    pub fn is_function(&self) -> bool {
        self.netfilter || self.proxy.is_some()
    }
}

/// The way to a service function behind an interface (End.AS, End.AD, End.AM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The behaviour.
    pub behavior: ProxyBehaviour,
    /// The interface that packets are sent by.
    pub to: ProxyLink,
    /// The interface that they come back by.
    pub back: ProxyLink,
    /// The function's address, where it routes.
    pub via: Option<IpAddr>,
}

impl Proxy {
    /// Whether packets get there and back.
    pub fn is_up(&self) -> bool {
        self.to.up && self.back.up
    }
}

/// An interface that leads to a function, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyLink {
    /// Its name.
    pub name: Arc<str>,
    /// Its index; none while it is not there.
    pub index: Option<u32>,
    /// Its address.
    pub mac: Mac,
    /// Whether it passes packets.
    pub up: bool,
}

/// A policy's name within its tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyId {
    /// One that several prefixes may name.
    Named(TenantId, Arc<str>),
    /// One prefix's own.
    Of(TenantId, IpNet),
}

/// Candidate lists for packets (RFC 9256).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lists, at least one; flows are spread over them by weight.
    pub lists: Vec<Weighted>,
    /// How they are put on packets.
    pub form: Form,
    /// Whether the kernel has this policy too.
    pub in_kernel: bool,
}

/// A list and its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// The segments.
    pub segments: SegmentList,
    /// Its share, in relation to the other lists' weights; not 0.
    pub weight: u32,
}
