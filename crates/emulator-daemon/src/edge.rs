//! An edge of the network: a gate, its output queue and the lateness of its packets.

use emulator::{Nanos, Packet, PortId};

use crate::{Error, Gate, GateCounts, Lateness, clock};

/// A port's gate.
pub(crate) struct Edge {
    pub(crate) port: PortId,
    pub(crate) gate: Gate,
    leaves: Vec<Packet>,
    /// Scheduled departure times of `leaves`.
    due: Vec<Nanos>,
    lateness: Lateness,
}

/// Counters of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EdgeCounts {
    /// Packets received and sent.
    pub gate: GateCounts,
    /// Lateness of the packets sent.
    pub lateness: Lateness,
}

impl Edge {
    pub(crate) fn new(port: PortId, gate: Gate) -> Self {
        Self { port, gate, leaves: Vec::new(), due: Vec::new(), lateness: Lateness::default() }
    }

    /// Queues a packet that leaves the network at this time.
    pub(crate) fn push(&mut self, at: Nanos, packet: Packet) {
        self.leaves.push(packet);
        self.due.push(at);
    }

    /// Sends the queued packets.
    pub(crate) fn put_out(&mut self) -> Result<(), Error> {
        if self.leaves.is_empty() {
            return Ok(());
        }
        self.gate.send(&self.leaves)?;
        self.leaves.clear();
        let now = clock::now();
        self.due.drain(..).for_each(|at| self.lateness.add(now.saturating_sub(at)));
        Ok(())
    }

    pub(crate) fn counts(&self) -> EdgeCounts {
        EdgeCounts { gate: self.gate.counts(), lateness: self.lateness }
    }
}
