//! Contents of a data plane file after validation. Interfaces and VRFs are still names.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use srv6::{Flavors, Form, Locator, SegmentList, SessionArgs};

use super::health::Health;
use crate::topology::Dataplane;

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
    /// Returns the names of all interfaces of the file: ports, their exits, and interfaces to service
    /// functions.
    pub fn interfaces(&self) -> impl Iterator<Item = &Name> {
        let ports = self.ports.iter().flat_map(|(name, port)| [Some(name), port.exit.as_ref()]);
        let proxies = self.sids.iter().filter_map(|(_, endpoint)| endpoint.behavior.proxy());
        ports.flatten().chain(proxies.flat_map(|proxy| [&proxy.to, &proxy.back]))
    }

    /// Returns true if senders of untagged frames on a port are outside of the SR domain.
    pub fn is_outside(&self, port: &Name) -> bool {
        self.ports.get(port).is_some_and(|port| port.edge || port.tenant.is_some())
    }

    /// Returns true if packets from an interface of the file must not reach SIDs: it is a port outside of
    /// the SR domain, or leads to a service function.
    pub fn closes(&self, interface: &Name) -> bool {
        let mut proxies = self.sids.iter().filter_map(|(_, endpoint)| endpoint.behavior.proxy());
        self.is_outside(interface)
            || proxies.any(|proxy| proxy.to == *interface || proxy.back == *interface)
    }

    /// Returns this file without the given ports and the entries that depend on them.
    pub fn without_ports(&self, missing: &BTreeSet<Name>) -> Self {
        let mut file = self.clone();
        file.ports.retain(|name, _| !missing.contains(name));
        for tenant in file.tenants.values_mut() {
            tenant.attachments.retain(|attachment| !missing.contains(&attachment.port));
        }
        file.sids.retain(|(_, endpoint)| {
            !endpoint.behavior.ports().iter().any(|port| missing.contains(*port))
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
    /// True at the edge of the SR domain: no SID is reachable in untagged frames of the port.
    pub edge: bool,
    /// VLANs of the port in the SR domain: SIDs are reachable in frames with these tags.
    pub vlans: Vec<Tags>,
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

/// Capacities of the tables. The default ones suit a file without `limits:` and with few entries.
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

impl Default for Limits {
    fn default() -> Self {
        // 16384 packets take 4 MiB per CPU.
        Self { sids: 4096, prefixes: 4096, policies: 4096, lists: 4096, tenants: 256, held: 16384 }
    }
}

/// A policy: its weighted segment lists (RFC 9256).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The lists, 1 to 64. Flows are distributed over them by weight.
    pub lists: Vec<Weighted>,
    /// Encapsulation mode.
    pub form: Form,
    /// Positions of the session, for payloads of GTP-U.
    pub session: Option<SessionArgs>,
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
    /// Tagged frames. Untagged frames are assigned by the port.
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

/// An endpoint behavior with names as arguments.
pub type Behavior = srv6::Behavior<Name, Table, Steer, Name>;

/// The path to a service function, with names of interfaces.
pub type Proxy = srv6::Proxy<Name>;

/// The treatment of packets to a SID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The behavior and its arguments.
    pub behavior: Behavior,
    /// Flavors.
    pub flavors: Flavors,
    /// VLAN tags of decapsulated packets; if none, the route determines them.
    pub tags: Tags,
    /// Health check of the service function.
    pub health: Option<Health>,
    /// Line in the file.
    pub line: u32,
}
