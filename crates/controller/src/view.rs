//! Read-only views for users.

use model::{
    AnnouncedFunction, AnnouncedInterface, Application, Bandwidth, Color, Decision, NodeSids,
};
use pathfinder::PortLoad;
use srv6::SegmentList;

/// The state of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Pending,
    Admitted,
    Degraded { limit: String, free_bps: u64 },
    Unreachable,
}

/// An application.
#[derive(Debug, Clone)]
pub(crate) struct AppView {
    pub(crate) application: Application,
    pub(crate) color: Color,
    pub(crate) standing: Standing,
    pub(crate) path: Vec<String>,
    /// The positions of its functions on the path, in order.
    pub(crate) functions_at: Vec<usize>,
    pub(crate) ipv4: SegmentList,
    pub(crate) ipv6: SegmentList,
    pub(crate) rate_bps: u64,
    pub(crate) moves: u32,
    pub(crate) error: Option<String>,
}

/// A path that was assessed.
#[derive(Debug, Clone)]
pub(crate) struct AlternativeView {
    pub(crate) path: Vec<String>,
    pub(crate) cost: u64,
    pub(crate) limit: Option<Limit>,
    pub(crate) chosen: bool,
    pub(crate) covers: bool,
    pub(crate) not_encodable: Option<String>,
}

/// The narrowest interface of a path.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) port: String,
    pub(crate) free_bps: u64,
    pub(crate) capacity: Option<Bandwidth>,
    pub(crate) congested: bool,
}

/// The explanation of an application's placement.
#[derive(Debug, Clone)]
pub(crate) struct Explained {
    pub(crate) app: AppView,
    pub(crate) alternatives: Vec<AlternativeView>,
    pub(crate) decision: Option<Decision>,
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct NodeView {
    pub(crate) name: String,
    pub(crate) alive: bool,
    pub(crate) transit: bool,
    pub(crate) sids: Option<NodeSids>,
    pub(crate) functions: Vec<AnnouncedFunction>,
    pub(crate) interfaces: Vec<InterfaceView>,
}

/// An interface.
#[derive(Debug, Clone)]
pub(crate) struct InterfaceView {
    pub(crate) interface: AnnouncedInterface,
    pub(crate) load: PortLoad,
    pub(crate) reserved_bps: u64,
}
