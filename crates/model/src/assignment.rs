//! The assignment of an application to a headend, which the controller sends.

use serde::{Deserialize, Serialize};
use srv6::SegmentList;

use crate::{Application, Policy};

/// An application at its headend: count its packets, and steer them into the policy's segment
/// lists. Packets with an empty list are routed by the IGP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The application.
    pub application: Application,
    /// The packets, and their segment lists.
    pub policy: Policy,
    /// The path that the lists encode; absent if there is none. The headend keeps it for a
    /// controller that has lost its store.
    pub placement: Option<Placement>,
}

/// A path by names, since a controller's IDs are not persistent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// First node.
    pub start: String,
    /// Links of the path, in order.
    pub steps: Vec<Step>,
    /// Segment list for inner IPv4 packets; empty for the IGP's own path.
    pub ipv4: SegmentList,
    /// Segment list for inner IPv6 packets; empty for the IGP's own path.
    pub ipv6: SegmentList,
    /// Bandwidth reserved on every link, in layer-2 bits per second.
    pub reserved_bps: u64,
}

/// A link of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Outgoing interface of the preceding node.
    pub interface: String,
    /// Node at the far end.
    pub node: String,
}

impl Placement {
    /// Names of the nodes on the path.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.start.as_str()).chain(self.steps.iter().map(|step| step.node.as_str()))
    }
}
