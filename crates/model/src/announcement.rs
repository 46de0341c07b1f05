//! What a node says of itself to the controller.

use std::net::IpAddr;

use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};

use crate::{Bandwidth, Sid};

/// A node's SIDs, addresses, interfaces and adjacencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// The node's name, one in the domain.
    pub node: String,
    /// Whether traffic of others may pass: a router, not a host.
    pub transit: bool,
    /// The SIDs that the node itself answers for; absent on a node without SRv6.
    pub sids: Option<NodeSids>,
    /// The node's own addresses: what an application's `to: NODE` means.
    pub addresses: Vec<IpAddr>,
    /// The service functions of the node.
    #[serde(default)]
    pub functions: Vec<Function>,
    /// The node's interfaces that carry links.
    pub interfaces: Vec<Interface>,
}

/// A service function: one of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The function's name; others of the same name do the same.
    pub name: String,
    /// The prefix of its SID: what is behind it is the argument.
    pub prefix: Ipv6Net,
    /// The SID with its argument.
    pub sid: Sid,
    /// Whether it works: its SID is routed.
    pub up: bool,
}

/// The SIDs of a node that belong to no single adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSids {
    /// End (RFC 8986 section 4.1).
    pub end: Sid,
    /// Decapsulates IPv4 and routes it in the main table.
    pub decap_ipv4: Sid,
    /// Decapsulates IPv6 and routes it in the main table.
    pub decap_ipv6: Sid,
}

/// One interface, with who is behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// The interface's name on its node.
    pub name: String,
    /// What the interface can send; absent when nothing limits it.
    pub capacity: Option<Bandwidth>,
    /// Whether the interface has a carrier.
    pub up: bool,
    /// The neighbours: one on a point-to-point link, several on a LAN.
    pub adjacencies: Vec<Adjacency>,
}

/// A neighbour on an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjacency {
    /// The neighbour's name.
    pub neighbour: String,
    /// The interface's IGP cost.
    pub cost: u32,
    /// End.X towards this neighbour (RFC 8986 section 4.2); absent on a node without SRv6.
    pub end_x: Option<Sid>,
}
