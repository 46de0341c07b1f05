//! An edge of the network: a gate, what leaves by it, and how late that is.

use emulator::{Nanos, Packet, PortId};

use crate::{Error, Gate, GateCounts, Lateness, clock};

/// A port's gate.
pub(crate) struct Edge {
    pub(crate) port: PortId,
    pub(crate) gate: Gate,
    leaves: Vec<Packet>,
    /// When they were to leave.
    due: Vec<Nanos>,
    lateness: Lateness,
}

/// What an edge has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EdgeCounts {
    /// What came in and went out.
    pub gate: GateCounts,
    /// How late that went out.
    pub lateness: Lateness,
}

impl Edge {
    pub(crate) fn new(port: PortId, gate: Gate) -> Self {
        Self { port, gate, leaves: Vec::new(), due: Vec::new(), lateness: Lateness::default() }
    }

    /// A packet leaves, at this moment.
    pub(crate) fn push(&mut self, at: Nanos, packet: Packet) {
        self.leaves.push(packet);
        self.due.push(at);
    }

    /// Puts out what leaves.
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
