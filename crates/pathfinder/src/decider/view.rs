//! Residual capacity as seen by one application.

use model::{Class, Color};

use super::{App, Decider};
use crate::graph::{ArcId, Path, PortId};
use crate::load::Managed;

/// The state of the network in one round, for one application.
pub(crate) struct View<'a> {
    decider: &'a Decider,
    managed: &'a Managed,
    color: Color,
    /// Bandwidth that the application gets at a congested port of its own path.
    served: u64,
}

impl Decider {
    /// The rate that managed applications, those of class bandwidth, send over each port.
    pub(crate) fn managed(&self) -> Managed {
        let mut managed = Managed::default();
        for app in self.apps.values().filter(|app| app.demand.class == Class::Bandwidth) {
            let leaving = app.leaving.as_ref().map(|(path, _)| path);
            managed.add(app.load.rate_bps, app.path.as_ref(), leaving, &self.loads);
        }
        managed
    }

    pub(crate) fn is_congested(&self, port: PortId) -> bool {
        self.loads.get(&port).is_some_and(|load| load.congested)
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(decider: &'a Decider, managed: &'a Managed, app: &App) -> Self {
        let served = if app.starved { app.load.rate_bps } else { u64::MAX };
        Self { decider, managed, color: app.demand.color, served }
    }

    /// Free bandwidth on `port` = capacity - background - reservations of other applications, where
    /// background = measured rate - measured rate of managed applications.
    fn residual(&self, managed: f64, port: PortId, capacity: u64) -> u64 {
        let measured = self.decider.loads.get(&port).map_or(0, |load| load.rate_bps);
        let background = (measured as f64 - managed).max(0.0) as u64;
        let reserved = self.decider.ledger.reserved_by_others(port, self.color);
        capacity.saturating_sub(background).saturating_sub(reserved)
    }

    /// Returns the free bandwidth of a port on the application's own path. Congestion there counts
    /// only once the application starves.
    fn free(&self, port: PortId, capacity: u64) -> u64 {
        let free = self.residual(self.managed.on(port), port, capacity);
        if self.decider.is_congested(port) { free.min(self.served) } else { free }
    }

    /// Returns the free bandwidth of a port that the application does not use yet. An application
    /// that is moving there counts by its reservation; none of the measured rate is attributed to
    /// it. On a congested port, elastic senders would take the bandwidth that the counters show as
    /// free, so only the managed part counts as available.
    fn free_for_newcomer(&self, port: PortId, capacity: u64) -> u64 {
        let managed = self.managed.certain_on(port);
        let free = self.residual(managed, port, capacity);
        if !self.decider.is_congested(port) {
            return free;
        }
        let reserved = self.decider.ledger.reserved_by_others(port, self.color);
        free.min((managed as u64).saturating_sub(reserved))
    }

    /// The free bandwidth of an arc for an application that is currently on the path `current`.
    pub(crate) fn free_on_arc(&self, arc: ArcId, current: Option<&Path>) -> u64 {
        let arc = self.decider.graph.arc(arc);
        let Some(capacity) = arc.capacity else { return u64::MAX };
        if current.is_some_and(|path| path.ports().any(|port| port == arc.port)) {
            self.free(arc.port, capacity.bps())
        } else {
            self.free_for_newcomer(arc.port, capacity.bps())
        }
    }

    /// The narrowest port among `arcs`, and its free bandwidth; None if no port is limited. The
    /// free bandwidth of a port that is crossed several times is divided by that number.
    pub(crate) fn limit(&self, arcs: &[ArcId], current: Option<&Path>) -> Option<(PortId, u64)> {
        let port = |id: ArcId| self.decider.graph.arc(id).port;
        let times = |of: PortId| arcs.iter().filter(|&&id| port(id) == of).count() as u64;
        arcs.iter()
            .filter(|&&id| self.decider.graph.arc(id).capacity.is_some())
            .map(|&id| (port(id), self.free_on_arc(id, current) / times(port(id))))
            .min_by_key(|&(_, free)| free)
    }
}
