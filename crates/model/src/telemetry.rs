//! Measurements of a node.

use crate::{Bandwidth, Color};

/// A report of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// Time of the samples, in nanoseconds since the Unix epoch.
    pub sampled_at_ns: u64,
    /// Interfaces that changed; once a second all of them.
    pub interfaces: Vec<InterfaceLoad>,
    /// Rate of each application that enters the network at this node, in layer-2 bits per second.
    pub applications: Vec<(Color, u64)>,
    /// Service functions that went up or down; once a second all of them.
    pub functions: Vec<FunctionState>,
}

/// State of a service function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionState {
    /// Name.
    pub name: String,
    /// True if it is up.
    pub up: bool,
}

/// State and load of an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceLoad {
    /// Interface name.
    pub name: String,
    /// True if it has a carrier.
    pub up: bool,
    /// Maximum transmit rate; absent if unlimited.
    pub capacity: Option<Bandwidth>,
    /// Transmit rate in layer-2 bits per second, averaged over the last samples.
    pub rate_bps: u64,
    /// Fraction of the packets that its queue dropped in that time, 0 to 1.
    pub loss: f64,
    /// Bytes in its queue.
    pub backlog_bytes: u64,
    /// True if the queue dropped packets or was full in at least half of the last second's samples.
    pub congested: bool,
}
