//! What a node measures.

use crate::{Bandwidth, Color};

/// A push of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    /// When the samples were taken, ns since the Unix epoch.
    pub sampled_at_ns: u64,
    /// Interfaces that changed; all of them once a second.
    pub interfaces: Vec<InterfaceLoad>,
    /// Applications that enter the network here, in layer-2 bits per second.
    pub applications: Vec<(Color, u64)>,
    /// Service functions that went up or down; all of them once a second.
    pub functions: Vec<(String, bool)>,
}

/// An interface's state and load.
#[derive(Debug, Clone, PartialEq)]
pub struct InterfaceLoad {
    /// The interface.
    pub name: String,
    /// Whether it has a carrier.
    pub up: bool,
    /// What it can send; absent when nothing limits it.
    pub capacity: Option<Bandwidth>,
    /// Layer-2 bits per second sent, averaged over the last samples.
    pub rate_bps: u64,
    /// The part of the packets that its queue dropped in that time, 0 to 1.
    pub loss: f64,
    /// Bytes waiting in its queue.
    pub backlog_bytes: u64,
    /// Whether the queue dropped packets or stood full in at least half of the last second's
    /// samples.
    pub congested: bool,
}
