//! `kaido app`: applications and their paths.

use model::Class;
use schemars::JsonSchema;
use serde::Serialize;

/// An application and its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApplicationStatus {
    /// Name of the application.
    pub name: String,
    /// Sending node.
    pub from: String,
    /// Receiving node, or destination prefix.
    pub to: String,
    /// Packets; null matches any value.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Criterion for its path.
    pub class: Class,
    /// Requested bandwidth in layer-2 bits per second; 0 if none is requested.
    pub demand_bps: u64,
    /// Service functions that its packets traverse, in order.
    pub functions: Vec<String>,
    /// Positions of the functions on the path, as indexes into `path`.
    pub functions_at: Vec<u32>,
    /// Color of its policy.
    pub color: u32,
    /// State of its path.
    pub state: ApplicationState,
    /// The narrowest interface of a degraded path.
    pub limit: Option<Limit>,
    /// Nodes of the path.
    pub path: Vec<String>,
    /// Segment list for IPv4 packets; empty if the IGP's path is used.
    pub ipv4_segments: Vec<String>,
    /// Segment list for IPv6 packets; empty if the IGP's path is used.
    pub ipv6_segments: Vec<String>,
    /// Rate in layer-2 bits per second, measured where the packets enter the network.
    pub rate_bps: u64,
    /// Number of moves to another path.
    pub moves: u32,
    /// The reason that the headend could not install the path.
    pub error: Option<String>,
}

/// Packets of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Match {
    /// Transport protocol: `tcp`, `udp`, `sctp` or `icmp`.
    pub protocol: Option<String>,
    /// First and last destination port.
    pub ports: Option<[u32; 2]>,
    /// First and last source port.
    pub source_ports: Option<[u32; 2]>,
    /// DSCP, 0 to 63.
    pub dscp: Option<u32>,
}

/// State of an application's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApplicationState {
    /// Waiting for its nodes.
    Pending,
    /// The path covers the demand.
    Admitted,
    /// No path covers the demand; this one covers most of it.
    Degraded,
    /// No path exists.
    Unreachable,
}

/// The narrowest interface of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Limit {
    /// Interface as `node:interface`.
    pub interface: String,
    /// Free bandwidth in layer-2 bits per second.
    pub free_bps: u64,
}

/// The explanation of an application's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Explanation {
    /// The application.
    pub application: ApplicationStatus,
    /// Paths that were considered.
    pub alternatives: Vec<Alternative>,
    /// The last decision.
    pub decision: Option<Decision>,
}

/// A path that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Alternative {
    /// Nodes of the path.
    pub path: Vec<String>,
    /// IGP cost.
    pub cost: u64,
    /// The narrowest interface; null if no interface of the path is limited.
    pub limit: Option<AlternativeLimit>,
    /// True if the application uses the path.
    pub chosen: bool,
    /// True if the path covers the demand.
    pub covers: bool,
    /// The reason that no segment list can encode the path.
    pub not_encodable: Option<String>,
}

/// The narrowest interface of a considered path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AlternativeLimit {
    /// Interface as `node:interface`.
    pub interface: String,
    /// Free bandwidth in layer-2 bits per second.
    pub free_bps: u64,
    /// Capacity in layer-2 bits per second.
    pub capacity_bps: u64,
    /// True if its queue drops packets or is full.
    pub congested: bool,
}

/// A decision of the controller. Times are in nanoseconds of one clock; 0 if it has not happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Decision {
    /// Name of the application.
    pub application: String,
    /// The cause, in words.
    pub cause: String,
    /// Nodes of the previous path.
    pub before: Vec<String>,
    /// Nodes of the new path.
    pub after: Vec<String>,
    /// Segment list for IPv4 packets.
    pub ipv4_segments: Vec<String>,
    /// Segment list for IPv6 packets.
    pub ipv6_segments: Vec<String>,
    /// Time at which a node took the sample that caused the decision.
    pub sampled_at_ns: u64,
    /// Time at which the controller received that sample.
    pub received_at_ns: u64,
    /// Time of the decision.
    pub decided_at_ns: u64,
    /// Time at which it was sent to the headend.
    pub sent_at_ns: u64,
    /// Time at which the headend had installed it in its kernel.
    pub installed_at_ns: u64,
}

/// An application that was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RemovedApplication {
    /// Name of the application.
    pub removed: String,
}
