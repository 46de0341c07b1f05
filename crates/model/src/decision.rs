//! A decision about an application, as stored and displayed.

use serde::{Deserialize, Serialize};
use srv6::SegmentList;

/// A decision with its cause and the time of each stage, in nanoseconds since the Unix epoch; zero
/// for a stage that was not reached.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Decision {
    /// Name of the application.
    pub application: String,
    /// Description of the cause.
    pub cause: String,
    /// Nodes of the previous path; empty for a new application.
    pub before: Vec<String>,
    /// Nodes of the new path.
    pub after: Vec<String>,
    /// Segment list for inner IPv4 packets.
    pub ipv4: SegmentList,
    /// Segment list for inner IPv6 packets.
    pub ipv6: SegmentList,
    /// Time at which a node took the first sample that showed the cause.
    pub sampled_at_ns: u64,
    /// Time at which the controller received that sample.
    pub received_at_ns: u64,
    /// Time of the controller's decision.
    pub decided_at_ns: u64,
    /// Time at which the decision was sent to the headend.
    pub sent_at_ns: u64,
    /// Time at which the headend's kernel had applied it.
    pub installed_at_ns: u64,
}
