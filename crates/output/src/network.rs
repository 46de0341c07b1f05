//! `kaido network`: nodes and the utilization of their links.

use schemars::JsonSchema;
use serde::Serialize;

/// A node, as its controller knows it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NetworkNode {
    /// Node name.
    pub name: String,
    /// True if the node's daemon is connected to the controller.
    pub alive: bool,
    /// True if paths may pass the node.
    pub transit: bool,
    /// Service functions of the node.
    pub functions: Vec<NodeFunction>,
    /// The node's SID with the behavior End.
    pub end: Option<String>,
    /// Interfaces of the node.
    pub interfaces: Vec<NetworkInterface>,
}

/// A service function of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeFunction {
    /// Function name.
    pub name: String,
    /// SID.
    pub sid: String,
    /// True if it is up.
    pub up: bool,
}

/// An interface of a node.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NetworkInterface {
    /// Interface name.
    pub name: String,
    /// True if the link is up.
    pub up: bool,
    /// Rate limit in layer-2 bits per second; 0 if the rate is not limited.
    pub capacity_bps: u64,
    /// Neighbors on the link.
    pub neighbors: Vec<Neighbor>,
    /// Rate in layer-2 bits per second, averaged over the last three samples.
    pub rate_bps: u64,
    /// Fraction of packets that the queue dropped in that time, from 0 to 1.
    pub loss: f64,
    /// Bytes in the queue.
    pub backlog_bytes: u64,
    /// True if the queue dropped packets or was full in at least half of the samples of the last
    /// second.
    pub congested: bool,
    /// Bandwidth of the applications on the link, in layer-2 bits per second.
    pub reserved_bps: u64,
}

/// A neighbor on a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Neighbor {
    /// Node name.
    pub node: String,
    /// IGP cost.
    pub cost: u32,
    /// SID with the behavior End.X that leads to it.
    pub end_x: String,
}
