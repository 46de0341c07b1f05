//! What a file asks of a data plane, checked in itself; interfaces and VRFs are still names.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::health::Health;
use super::sid_text::Behaviour;
use crate::topology::Dataplane;
use crate::{Locator, SegmentList};

/// A name that the file gives or uses.
pub type Name = Arc<str>;

/// What a data plane is to do. Every name of a port, policy or tenant in it is a key of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The outer source address; there is one if anything is encapsulated.
    pub source: Option<Ipv6Addr>,
    /// Where SIDs are taken from; they do not overlap.
    pub locators: Vec<Locator>,
    /// The prefixes that SIDs may be addressed from; none for all.
    pub sources: Vec<Ipv6Net>,
    /// What forwards.
    pub dataplane: Dataplane,
    /// Whether the kernel's own SRv6 routes are taken over.
    pub import: bool,
    /// The interfaces of the data plane.
    pub ports: BTreeMap<Name, Port>,
    /// The sizes of the tables; large enough for this file.
    pub limits: Limits,
    /// Policies that several prefixes may name.
    pub policies: BTreeMap<Name, Policy>,
    /// The tenants.
    pub tenants: BTreeMap<Name, Tenant>,
    /// The SIDs, in the file's order, each once.
    pub sids: Vec<(Ipv6Net, Endpoint)>,
}

impl File {
    /// This without some ports, and without what they alone are for.
    pub fn without_ports(&self, missing: &[Name]) -> Self {
        let mut file = self.clone();
        file.ports.retain(|name, _| !missing.contains(name));
        for tenant in file.tenants.values_mut() {
            tenant.attachments.retain(|attachment| !missing.contains(&attachment.port));
        }
        file.sids.retain(|(_, endpoint)| {
            !matches!(&endpoint.action, Action::EndDx2(port) if missing.contains(port))
        });
        for port in file.ports.values_mut() {
            port.exit = port.exit.take().filter(|exit| !missing.contains(exit));
        }
        file
    }
}

/// An interface of the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Where the program runs.
    pub mode: Mode,
    /// To whom frames without a tag belong.
    pub tenant: Option<Name>,
    /// The interface that packets for the port are sent into, in the port's place.
    pub exit: Option<Name>,
    /// Whether the SR domain ends here: no SID can be reached from the port.
    pub edge: bool,
    /// The line in the file.
    pub line: u32,
}

/// Where the program of a port runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the driver if it can, else in the stack.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the stack, on a socket buffer.
    Generic,
}

/// How much fits into the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// SIDs.
    pub sids: u32,
    /// Prefixes of all tenants.
    pub prefixes: u32,
    /// Policies: a named one counts once for each tenant that names it.
    pub policies: u32,
    /// Segment lists of all policies.
    pub lists: u32,
    /// Tenants.
    pub tenants: u32,
    /// Packets that service functions hold, for each processor.
    pub held: u32,
}

/// How a headend encapsulates (RFC 8986 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// H.Encaps: the whole list is in the header.
    Whole,
    /// H.Encaps.Red: the first segment is in the destination address alone.
    #[default]
    Reduced,
}

/// What is in front of a packet: an IP packet, or an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// H.Encaps, End.B6.Encaps.
    Packet,
    /// H.Encaps.L2.
    Frame,
}

impl Form {
    /// The most segments that there is room for: XDP lets a frame grow by 216 bytes, of which a
    /// frame inside needs 14 for the outer Ethernet header.
    pub fn longest(self, payload: Payload) -> usize {
        let room = match payload {
            Payload::Packet => 208,
            Payload::Frame => 216 - 14,
        };
        let in_header = (room - 40 - 8) / 16;
        in_header + usize::from(self == Self::Reduced)
    }
}

/// Segment lists for packets (RFC 9256).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lists, 1 to 64; flows are spread over them by weight.
    pub lists: Vec<Weighted>,
    /// How they are put on packets.
    pub form: Form,
}

/// A list and its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// The segments; at least one.
    pub segments: SegmentList,
    /// Its share, in relation to the other lists' weights; not 0.
    pub weight: u32,
}

/// Which policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// One of the file's.
    Named(Name),
    /// One of its own.
    Own(Policy),
}

/// A tenant: an address space of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Where decapsulated packets are looked up.
    pub table: Option<Table>,
    /// Whether its table may be without a default route.
    pub falls_through: bool,
    /// The prefixes that its packets may come from; none for all.
    pub sources: Vec<IpNet>,
    /// Its tagged frames. Those without a tag are the port's.
    pub attachments: Vec<Attachment>,
    /// Where its frames go as they are. A tenant with these has no routes.
    pub frames: Option<Steer>,
    /// Where its packets go, by destination; each prefix once.
    pub routes: Vec<(IpNet, Steer)>,
    /// The line in the file.
    pub line: u32,
}

/// Frames of a port with certain tags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    /// The port.
    pub port: Name,
    /// The tags.
    pub tags: Tags,
}

/// VLAN tags, 1 to 4094; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tags {
    /// The outer, or only, tag.
    pub outer: u16,
    /// The inner tag of two.
    pub inner: u16,
}

/// A routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// By its number; not 0.
    Number(u32),
    /// That of a VRF device.
    Vrf(Name),
}

/// What a SID does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The behaviour and its arguments.
    pub action: Action,
    /// Its flavours.
    pub flavours: Flavours,
    /// The tags that decapsulated packets leave with; none for those that the route says.
    pub tags: Tags,
    /// How it is found out whether the service function works.
    pub health: Option<Health>,
    /// The line in the file.
    pub line: u32,
}

/// An endpoint behaviour (RFC 8986 section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// End: on to the next segment.
    End,
    /// End.X: on to the next segment, by a neighbour, over a port if one is given.
    EndX(Ipv6Addr),
    /// End.T: on to the next segment, looked up in a table.
    EndT(Table),
    /// End.DX2: decapsulate, send the frame by a port.
    EndDx2(Name),
    /// End.DX4: decapsulate, send the IPv4 packet to a neighbour; 0.0.0.0 for its own destination.
    EndDx4(Ipv4Addr),
    /// End.DX6: decapsulate, send the IPv6 packet to a neighbour; `::` for its own destination.
    EndDx6(Ipv6Addr),
    /// End.DT4: decapsulate, look the IPv4 packet up.
    EndDt4(Table),
    /// End.DT6: decapsulate, look the IPv6 packet up.
    EndDt6(Table),
    /// End.DT46: decapsulate, look the packet up.
    EndDt46(Table),
    /// End.B6.Encaps: on to the next segment, in an outer header.
    EndB6Encaps(Steer),
    /// End.AN.NF: the inner packet through netfilter, then on to the next segment. Behind the SID's
    /// prefix is the argument, 32 bits at most, which is the inner packet's mark.
    EndAnNf {
        /// By which lists this node's own answers to the inner packet go; without, by none.
        answers: Option<Steer>,
    },
    /// End.AS, End.AD, End.AM: to a service function behind an interface, and on to the next segment
    /// with what comes back.
    Proxy(Proxy),
}

/// The way to a service function behind an interface, and back
/// (draft-ietf-spring-sr-service-programming).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// What is done.
    pub kind: ProxyKind,
    /// The interface that packets are sent by.
    pub to: Name,
    /// The interface that they come back by.
    pub back: Name,
    /// The function's address, where it routes; none where it takes frames to anybody.
    pub via: Option<IpAddr>,
}

/// What a proxy does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyKind {
    /// End.AS: the outer header goes; what comes back gets one of these.
    Static(Steer),
    /// End.AD: the outer header goes, and each packet that comes back gets its own again.
    Dynamic,
    /// End.AM: the packet goes with its SRH, to its last segment.
    Masquerading,
}

impl ProxyKind {
    /// The behaviour alone.
    pub fn behaviour(&self) -> ProxyBehaviour {
        match self {
            Self::Static(_) => ProxyBehaviour::Static,
            Self::Dynamic => ProxyBehaviour::Dynamic,
            Self::Masquerading => ProxyBehaviour::Masquerading,
        }
    }
}

/// The behaviour of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyBehaviour {
    /// End.AS: what comes back gets the policy's outer header.
    Static,
    /// End.AD: what comes back gets its own outer header.
    Dynamic,
    /// End.AM: what comes back is to its next segment again.
    Masquerading,
}

impl ProxyBehaviour {
    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => Behaviour::EndAs.name(),
            Self::Dynamic => Behaviour::EndAd.name(),
            Self::Masquerading => Behaviour::EndAm.name(),
        }
    }
}

/// Variations of a behaviour (RFC 8986 section 4.16, RFC 9800).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flavours {
    /// Penultimate segment pop.
    pub psp: bool,
    /// Ultimate segment pop.
    pub usp: bool,
    /// Ultimate segment decapsulation.
    pub usd: bool,
    /// NEXT-C-SID, and the bits of the block and of the node and function: multiples of 8.
    pub next_csid: Option<(u8, u8)>,
}
