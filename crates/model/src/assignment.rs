//! What a controller tells a headend about an application.

use serde::{Deserialize, Serialize};

use crate::{Application, Policy, SegmentList};

/// An application at its headend: count its packets, and send them over the policy's lists.
/// Empty lists leave them to the IGP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The application.
    pub application: Application,
    /// Its packets, and the segment lists that they take.
    pub policy: Policy,
    /// The path behind the lists; absent while there is none. The headend keeps it for a
    /// controller that has lost its store.
    pub placement: Option<Placement>,
}

/// A path by names, since a controller's ids do not outlive it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The first node.
    pub start: String,
    /// Each link crossed.
    pub steps: Vec<Step>,
    /// The segment list for IPv4 inside; empty: the IGP's own path.
    pub ipv4: SegmentList,
    /// The segment list for IPv6 inside; empty: the IGP's own path.
    pub ipv6: SegmentList,
    /// Reserved on every link, layer-2 bits per second.
    pub reserved_bps: u64,
}

/// A link crossed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The interface on the node before.
    pub interface: String,
    /// The node behind.
    pub node: String,
}

impl Placement {
    /// The names of the nodes on the path.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.start.as_str()).chain(self.steps.iter().map(|step| step.node.as_str()))
    }
}
