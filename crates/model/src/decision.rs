//! A decision about an application, as it is kept and shown.

use serde::{Deserialize, Serialize};

use crate::SegmentList;

/// What was decided, why, and when each stage was passed, in ns since the Unix epoch; zero for a
/// stage that was not passed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Decision {
    /// The application's name.
    pub application: String,
    /// Why, in words.
    pub cause: String,
    /// The nodes of the path before; none for a new application.
    pub before: Vec<String>,
    /// The nodes of the path after.
    pub after: Vec<String>,
    /// The segment list for IPv4 inside.
    pub ipv4: SegmentList,
    /// The segment list for IPv6 inside.
    pub ipv6: SegmentList,
    /// When a node took the first sample that showed the cause.
    pub sampled_at_ns: u64,
    /// When the controller had that sample.
    pub received_at_ns: u64,
    /// When it had decided.
    pub decided_at_ns: u64,
    /// When the headend was told.
    pub sent_at_ns: u64,
    /// When the headend's kernel had it.
    pub installed_at_ns: u64,
}
