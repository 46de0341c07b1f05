//! How much is free, as one application sees it.

use model::{Class, Color};

use super::Decider;
use crate::graph::{ArcId, Path, PortId};
use crate::load::Managed;

/// The state of the network in one round, for one application.
pub(crate) struct View<'a> {
    pub(crate) decider: &'a Decider,
    pub(crate) managed: &'a Managed,
    pub(crate) color: Color,
}

impl Decider {
    /// What managed applications send over each port now.
    pub(crate) fn managed(&self) -> Managed {
        let mut managed = Managed::default();
        for app in self.apps.values().filter(|app| app.demand.class == Class::Bandwidth) {
            managed.add(app.load.rate_bps, app.path.iter().chain(&app.leaving), &self.loads);
        }
        managed
    }
}

impl View<'_> {
    /// Free bandwidth on `port` = capacity - background - other applications' reservations, where
    /// background = measured - what managed applications were measured to send.
    pub(crate) fn free(&self, port: PortId, capacity: u64) -> u64 {
        let load = self.decider.loads.get(&port).copied().unwrap_or_default();
        let background = (load.rate_bps as f64 - self.managed.on(port)).max(0.0) as u64;
        let reserved = self.decider.ledger.reserved_by_others(port, self.color);
        capacity.saturating_sub(background).saturating_sub(reserved)
    }

    /// As [`View::free`], for an application that is not on the port yet. Where packets queue,
    /// elastic senders would take what the counters leave: all but the managed part is taken.
    pub(crate) fn free_for_newcomer(&self, port: PortId, capacity: u64) -> u64 {
        let free = self.free(port, capacity);
        if !self.decider.loads.get(&port).is_some_and(|load| load.congested) {
            return free;
        }
        let reserved = self.decider.ledger.reserved_by_others(port, self.color);
        free.min((self.managed.on(port) as u64).saturating_sub(reserved))
    }

    /// The free bandwidth of an arc for an application that is on `current` now.
    pub(crate) fn free_on_arc(&self, arc: ArcId, current: Option<&Path>) -> u64 {
        let arc = self.decider.graph.arc(arc);
        let Some(capacity) = arc.capacity else { return u64::MAX };
        if current.is_some_and(|path| path.ports().any(|port| port == arc.port)) {
            self.free(arc.port, capacity.bps())
        } else {
            self.free_for_newcomer(arc.port, capacity.bps())
        }
    }

    /// The narrowest port among `arcs`, and its free bandwidth; nothing when none is limited.
    pub(crate) fn limit(&self, arcs: &[ArcId], current: Option<&Path>) -> Option<(PortId, u64)> {
        arcs.iter()
            .filter(|&&id| self.decider.graph.arc(id).capacity.is_some())
            .map(|&id| (self.decider.graph.arc(id).port, self.free_on_arc(id, current)))
            .min_by_key(|&(_, free)| free)
    }
}
