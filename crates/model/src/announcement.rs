//! The announcement that a node sends to the controller.

use std::net::IpAddr;

use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};
use srv6::Sid;

use crate::Bandwidth;

/// A node's SIDs, addresses, interfaces and adjacencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// Node name, unique in the domain.
    pub node: String,
    /// True if the node forwards transit traffic: a router, not a host.
    pub transit: bool,
    /// SIDs instantiated on the node itself; absent on a node without SRv6.
    pub sids: Option<NodeSids>,
    /// The node's own addresses, to which an application's `to: NODE` refers.
    pub addresses: Vec<IpAddr>,
    /// The service functions of the node.
    #[serde(default)]
    pub functions: Vec<Function>,
    /// The node's interfaces to links.
    pub interfaces: Vec<Interface>,
}

/// An instance of a service function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Function name; instances of the same name are interchangeable.
    pub name: String,
    /// Prefix of its SID; the remaining bits are the argument.
    pub prefix: Ipv6Net,
    /// The SID, including its argument.
    pub sid: Sid,
    /// Liveness: true if the SID is routed.
    pub up: bool,
}

/// The SIDs of a node that are not bound to an adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSids {
    /// End (RFC 8986 section 4.1).
    pub end: Sid,
    /// SID that decapsulates IPv4 and routes it in the main table.
    pub decap_ipv4: Sid,
    /// SID that decapsulates IPv6 and routes it in the main table.
    pub decap_ipv6: Sid,
}

/// An interface with its neighbors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Interface name on its node.
    pub name: String,
    /// Maximum transmit rate; absent if unlimited.
    pub capacity: Option<Bandwidth>,
    /// True if the interface has a carrier.
    pub up: bool,
    /// Neighbors: one on a point-to-point link, several on a LAN.
    pub adjacencies: Vec<Adjacency>,
}

/// A neighbor on an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjacency {
    /// Name of the neighbor.
    pub neighbor: String,
    /// IGP cost of the interface.
    pub cost: u32,
    /// End.X SID of this adjacency (RFC 8986 section 4.2); absent on a node without SRv6.
    pub end_x: Option<Sid>,
}
