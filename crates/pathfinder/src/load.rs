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
    /// When it was measured.
    pub stamps: Stamps,
}

/// When something was measured, and when that was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamps {
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
    /// When it was measured.
    pub stamps: Stamps,
}

/// The bits per second on each port that belong to managed applications.
///
/// An application's packets thin out along its path as queues drop them, and a port's counter
/// holds only what passed: so each port is charged with what the ports up to and including it let
/// through.
#[derive(Debug, Default)]
pub(crate) struct Managed {
    likely: HashMap<PortId, f64>,
    certain: HashMap<PortId, f64>,
}

impl Managed {
    /// Adds an application that sends `rate_bps` over `path`. While it moves there is the path
    /// that it is leaving as well: what a port averages still holds packets from before.
    pub(crate) fn add(
        &mut self,
        rate_bps: u64,
        path: Option<&Path>,
        leaving: Option<&Path>,
        loads: &HashMap<PortId, PortLoad>,
    ) {
        let mut shares: HashMap<PortId, (f64, usize)> = HashMap::new();
        for path in path.into_iter().chain(leaving) {
            let mut left = rate_bps as f64;
            // A port that it crosses twice carries it twice.
            let mut own: HashMap<PortId, f64> = HashMap::new();
            for port in path.ports() {
                left *= 1.0 - loads.get(&port).map_or(0.0, |load| load.loss.clamp(0.0, 1.0));
                *own.entry(port).or_default() += left;
            }
            for (port, sent) in own {
                let (share, paths) = shares.entry(port).or_default();
                *share = share.max(sent);
                *paths += 1;
            }
        }
        let all = usize::from(path.is_some()) + usize::from(leaving.is_some());
        for (port, (share, paths)) in shares {
            *self.likely.entry(port).or_default() += share;
            if paths == all {
                *self.certain.entry(port).or_default() += share;
            }
        }
    }

    /// What managed applications send over `port`, those on the move on both their paths.
    pub(crate) fn on(&self, port: PortId) -> f64 {
        self.likely.get(&port).copied().unwrap_or(0.0)
    }

    /// As [`Managed::on`], without those that may not have come to this port yet, or may have left.
    pub(crate) fn certain_on(&self, port: PortId) -> f64 {
        self.certain.get(&port).copied().unwrap_or(0.0)
    }
}
