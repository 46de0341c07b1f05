//! Measured load, and the part of it that is not from managed applications.

use std::collections::HashMap;

use crate::graph::{Path, PortId};

/// The load of a port, averaged by its node over the last few samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PortLoad {
    /// Layer-2 bits per second sent.
    pub rate_bps: u64,
    /// The fraction of packets that the port's queue dropped, 0 to 1.
    pub loss: f64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// True if the queue dropped packets or was full in at least half of the samples of the last
    /// second.
    pub congested: bool,
    /// The time of the measurement.
    pub stamps: Stamps,
}

/// The times at which a measurement was taken and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamps {
    /// Time of the sample on the node, in ns since the Unix epoch.
    pub sampled_at_ns: u64,
    /// Time of reception at the controller, in ns since the Unix epoch.
    pub received_at_ns: u64,
}

/// The load of an application, counted where its packets enter the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppLoad {
    /// Layer-2 bits per second as the packets leave the host, including outer headers.
    pub rate_bps: u64,
    /// The time of the measurement.
    pub stamps: Stamps,
}

/// The rate on each port, in bits per second, that belongs to managed applications.
///
/// Queues on the path drop some of an application's packets, and a port counts only packets that it
/// sent. So each port is charged with the rate that passes all ports up to and including itself.
#[derive(Debug, Default)]
pub(crate) struct Managed {
    likely: HashMap<PortId, f64>,
    certain: HashMap<PortId, f64>,
}

impl Managed {
    /// Adds an application that sends `rate_bps` over `path`. While it moves, `leaving` is the old
    /// path, because a port's average still includes earlier packets.
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
            // A port that the path crosses twice carries the packets twice.
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

    /// The rate of managed applications on `port`. Applications that move count on both of their
    /// paths.
    pub(crate) fn on(&self, port: PortId) -> f64 {
        self.likely.get(&port).copied().unwrap_or(0.0)
    }

    /// Like [`Managed::on`], without applications that may not use this port yet, or not any more.
    pub(crate) fn certain_on(&self, port: PortId) -> f64 {
        self.certain.get(&port).copied().unwrap_or(0.0)
    }
}
