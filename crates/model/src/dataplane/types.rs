//! Contents of a data plane's file after validation. Interfaces and VRFs are still names.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::health::Health;
use super::sid_text::Behavior;
use crate::topology::Dataplane;
use crate::{Locator, SegmentList};

/// A name that the file defines or uses.
pub type Name = Arc<str>;

/// The configuration of a data plane. All names of ports, policies and tenants in it are defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The outer source address, present if any packets are encapsulated.
    pub source: Option<Ipv6Addr>,
    /// Prefixes that SIDs are allocated from. They do not overlap.
    pub locators: Vec<Locator>,
    /// Source prefixes that may address SIDs; none if all sources may.
    pub sources: Vec<Ipv6Net>,
    /// The data plane that forwards packets.
    pub dataplane: Dataplane,
    /// True if the kernel's own SRv6 routes are imported.
    pub import: bool,
    /// The interfaces of the data plane.
    pub ports: BTreeMap<Name, Port>,
    /// Capacities of the tables, sufficient for this file.
    pub limits: Limits,
    /// Named policies, which several prefixes may refer to.
    pub policies: BTreeMap<Name, Policy>,
    /// The tenants.
    pub tenants: BTreeMap<Name, Tenant>,
    /// The SIDs, without duplicates, in the order of the file.
    pub sids: Vec<(Ipv6Net, Endpoint)>,
}

impl File {
    /// Returns this file without the given ports and the entries that depend on them.
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
    /// XDP mode.
    pub mode: Mode,
    /// Tenant that owns untagged frames.
    pub tenant: Option<Name>,
    /// Interface that packets for the port are redirected to instead.
    pub exit: Option<Name>,
    /// True at the edge of the SR domain: no SID is reachable from the port.
    pub edge: bool,
    /// Line in the file.
    pub line: u32,
}

/// XDP mode of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the driver if it supports that, otherwise in the network stack.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the network stack, on an skb.
    Generic,
}

/// Capacities of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Number of SIDs.
    pub sids: u32,
    /// Number of prefixes of all tenants.
    pub prefixes: u32,
    /// Number of policies. A named policy counts once per tenant that refers to it.
    pub policies: u32,
    /// Number of segment lists of all policies.
    pub lists: u32,
    /// Number of tenants.
    pub tenants: u32,
    /// Number of packets in service functions, per CPU.
    pub held: u32,
}

/// Encapsulation mode of a headend (RFC 8986 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// H.Encaps: the SRH contains the whole segment list.
    Whole,
    /// H.Encaps.Red: the first segment is only in the destination address.
    #[default]
    Reduced,
}

/// Type of the encapsulated payload: an IP packet or an Ethernet frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// H.Encaps, End.B6.Encaps.
    Packet,
    /// H.Encaps.L2.
    Frame,
}

impl Form {
    /// Returns the maximum number of segments. XDP can grow a frame by 216 bytes, of which an
    /// encapsulated frame needs 14 for the outer Ethernet header.
    pub fn longest(self, payload: Payload) -> usize {
        let room = match payload {
            Payload::Packet => 208,
            Payload::Frame => 216 - 14,
        };
        let in_header = (room - 40 - 8) / 16;
        in_header + usize::from(self == Self::Reduced)
    }
}

/// A policy: its weighted segment lists (RFC 9256).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lists, 1 to 64. Flows are distributed over them by weight.
    pub lists: Vec<Weighted>,
    /// Encapsulation mode.
    pub form: Form,
}

/// A segment list and its weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighted {
    /// The segments, at least one.
    pub segments: SegmentList,
    /// Weight relative to the other lists; not 0.
    pub weight: u32,
}

/// Reference to a policy, or a policy defined in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// A named policy of the file.
    Named(Name),
    /// A policy defined in place.
    Own(Policy),
}

/// A tenant, with a separate address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Routing table for decapsulated packets.
    pub table: Option<Table>,
    /// True if the table may lack a default route.
    pub falls_through: bool,
    /// Permitted source prefixes of its packets; none if all sources are permitted.
    pub sources: Vec<IpNet>,
    /// Its tagged frames. Untagged frames are assigned by the port.
    pub attachments: Vec<Attachment>,
    /// Policy for whole frames (H.Encaps.L2). A tenant with such a policy has no routes.
    pub frames: Option<Steer>,
    /// Policies by destination prefix, without duplicates.
    pub routes: Vec<(IpNet, Steer)>,
    /// Line in the file.
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
    /// The inner of two tags.
    pub inner: u16,
}

/// A routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Table {
    /// Table number; not 0.
    Number(u32),
    /// Table of a VRF device.
    Vrf(Name),
}

/// An endpoint behavior with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The behavior and its arguments.
    pub action: Action,
    /// Its flavors.
    pub flavors: Flavors,
    /// VLAN tags of decapsulated packets; if none, the route determines them.
    pub tags: Tags,
    /// Health check of the service function.
    pub health: Option<Health>,
    /// Line in the file.
    pub line: u32,
}

/// An endpoint behavior (RFC 8986 section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// End: forwards to the next segment.
    End,
    /// End.X: forwards to the next segment through a given neighbour.
    EndX(Ipv6Addr),
    /// End.T: forwards to the next segment, which is looked up in a table.
    EndT(Table),
    /// End.DX2: decapsulates and sends the frame on a port.
    EndDx2(Name),
    /// End.DX4: decapsulates and sends the IPv4 packet to a next hop; 0.0.0.0 stands for the
    /// packet's own destination.
    EndDx4(Ipv4Addr),
    /// End.DX6: decapsulates and sends the IPv6 packet to a next hop; `::` stands for the packet's
    /// own destination.
    EndDx6(Ipv6Addr),
    /// End.DT4: decapsulates and looks up the IPv4 packet.
    EndDt4(Table),
    /// End.DT6: decapsulates and looks up the IPv6 packet.
    EndDt6(Table),
    /// End.DT46: decapsulates and looks up the packet.
    EndDt46(Table),
    /// End.B6.Encaps: advances to the next segment and steers the packet into a policy.
    EndB6Encaps(Steer),
    /// End.AN.NF: passes the inner packet through netfilter and forwards to the next segment. The
    /// argument of the SID, at most 32 bits, becomes the inner packet's mark.
    EndAnNf {
        /// Return policy for local replies to the inner packet; without one they are dropped.
        answers: Option<Steer>,
    },
    /// End.AS, End.AD, End.AM: sends packets to a service function behind an interface, and
    /// forwards returning packets to the next segment.
    Proxy(Proxy),
}

/// The path to a service function behind an interface, and back
/// (draft-ietf-spring-sr-service-programming).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The behavior.
    pub kind: ProxyKind,
    /// Interface that packets are sent on (IFACE-OUT).
    pub to: Name,
    /// Interface that packets return on (IFACE-IN).
    pub back: Name,
    /// Address of the function (NH-ADDR) if it routes; none if it accepts any destination MAC
    /// address.
    pub via: Option<IpAddr>,
}

/// Behavior of a proxy, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyKind {
    /// End.AS: removes the outer header. Returning packets get one of the given policy.
    Static(Steer),
    /// End.AD: removes the outer header. Each returning packet gets its own header back.
    Dynamic,
    /// End.AM: keeps the SRH, and masks the destination with the last segment.
    Masquerading,
}

impl ProxyKind {
    /// Returns the behavior without arguments.
    pub fn behavior(&self) -> ProxyBehavior {
        match self {
            Self::Static(_) => ProxyBehavior::Static,
            Self::Dynamic => ProxyBehavior::Dynamic,
            Self::Masquerading => ProxyBehavior::Masquerading,
        }
    }
}

/// Behavior of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyBehavior {
    /// End.AS: returning packets get the policy's outer header.
    Static,
    /// End.AD: returning packets get their own outer header back.
    Dynamic,
    /// End.AM: the destination of returning packets is restored to the next segment.
    Masquerading,
}

impl ProxyBehavior {
    /// Returns its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => Behavior::EndAs.name(),
            Self::Dynamic => Behavior::EndAd.name(),
            Self::Masquerading => Behavior::EndAm.name(),
        }
    }
}

/// Flavors of a behavior (RFC 8986 section 4.16, RFC 9800).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flavors {
    /// Penultimate Segment Pop.
    pub psp: bool,
    /// Ultimate Segment Pop.
    pub usp: bool,
    /// Ultimate Segment Decapsulation.
    pub usd: bool,
    /// NEXT-C-SID, with the lengths in bits of the locator block and of node plus function,
    /// multiples of 8.
    pub next_csid: Option<(u8, u8)>,
}
