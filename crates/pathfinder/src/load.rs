//! What is measured, and what of it is not the applications' own.

use std::collections::HashMap;

use crate::graph::{Path, PortId};

/// A port's load, averaged by its node over the last few samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PortLoad {
    /// Layer-2 bits per second sent.
    pub rate_bps: u64,
    /// The part of the packets that the port's queue dropped, 0 to 1.
    pub loss: f64,
    /// Bytes waiting in the queue.
    pub backlog_bytes: u64,
    /// Whether the queue dropped packets or stood full in at least half of the last second's
    /// samples.
    pub congested: bool,
    /// When the node sampled, ns since the Unix epoch.
    pub sampled_at_ns: u64,
    /// When the controller received it, ns since the Unix epoch.
    pub received_at_ns: u64,
}

/// An application's load, counted where its packets enter the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppLoad {
    /// Layer-2 bits per second, as the packets leave the host: outer headers included.
    pub rate_bps: u64,
    /// When the node sampled, ns since the Unix epoch.
    pub sampled_at_ns: u64,
}

/// The bits per second on each port that belong to managed applications.
///
/// An application's packets thin out along its path as queues drop them, and a port's counter
/// holds only what passed: so each port is charged with what the ports up to and including it let
/// through.
#[derive(Debug, Default)]
pub(crate) struct Managed(HashMap<PortId, f64>);

impl Managed {
    /// Adds an application that sends `rate_bps` over `paths`; two while it moves, since what a
    /// port averages still holds packets from before.
    pub(crate) fn add<'a>(
        &mut self,
        rate_bps: u64,
        paths: impl IntoIterator<Item = &'a Path>,
        loads: &HashMap<PortId, PortLoad>,
    ) {
        let mut share: HashMap<PortId, f64> = HashMap::new();
        for path in paths {
            let mut left = rate_bps as f64;
            for port in path.ports() {
                left *= 1.0 - loads.get(&port).map_or(0.0, |load| load.loss.clamp(0.0, 1.0));
                let held = share.entry(port).or_default();
                *held = held.max(left);
            }
        }
        for (port, bits) in share {
            *self.0.entry(port).or_default() += bits;
        }
    }

    /// What managed applications send over `port`.
    pub(crate) fn on(&self, port: PortId) -> f64 {
        self.0.get(&port).copied().unwrap_or(0.0)
    }
}
