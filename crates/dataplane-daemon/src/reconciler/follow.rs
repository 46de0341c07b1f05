//! Follows the kernel: handles its change events as they arrive, and reads its tables in full once
//! the changes have settled.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use model::dataplane::{Dataplane as Which, File};
use netlink::{Encap, Event, Neighbor, NeighborState};

use super::{Ports, Reconciler, TICK};
use crate::Error;
use crate::host::Seen;

/// Time that the kernel's tables must be unchanged for before they are read.
pub(super) const SETTLE: Duration = Duration::from_millis(20);
/// Pause after a read of the tables, as a multiple of the duration of the read: large tables take
/// long.
const REST: u32 = 4;
/// Poll interval for kernel state without events: the outer source address (`ip sr tunsrc`), and
/// the interfaces that require an HMAC.
pub(super) const SILENT_EVERY: Duration = Duration::from_secs(1);
/// Number of events between two orders: a tenant's neighbor discovery can cause 100,000 a second.
const EVENTS: u32 = 1000;

impl Reconciler {
    /// Waits one tick for events and handles them.
    pub(crate) fn follow(&mut self) -> Result<(), Error> {
        self.continue_trace();
        for (interface, address) in self.plane.heartbeat() {
            if let Err(error) = self.host.probe(interface, address) {
                tracing::debug!("{}", api::in_one_line(&error));
            }
        }
        if self.checks.changed()
            && let Err(error) = self.host.announce(&self.checks.up())
        {
            tracing::warn!("cannot announce the routes of functions: {}", api::in_one_line(&error));
            // Force a full pass, which restores the routes: without a previous state nothing counts
            // as unchanged.
            self.seen = None;
            self.changed_since.get_or_insert_with(Instant::now);
        }
        let mut event = self.host.event(TICK)?;
        let (mut generation, mut left) = (false, EVENTS);
        while let Some(one) = event {
            let change = self.handle(&one);
            generation |= change.routes;
            if change.exact {
                // Until the next read of the tables clears it.
                self.plane.set_exact(true);
            }
            if change.tables && self.changed_since.is_none() {
                self.changed_since = Some(Instant::now());
            }
            // Another overrun may follow: processes can flood the socket.
            left = if one == Event::Overrun { 0 } else { left - 1 };
            event = match left {
                0 => None,
                _ => self.host.event(Duration::ZERO)?,
            };
        }
        if generation {
            self.plane.invalidate_routes();
        }
        if self.looked_for_silent.elapsed() >= SILENT_EVERY {
            self.looked_for_silent = Instant::now();
            self.host.keep_guard();
            let now = self.plane.current();
            let ports: BTreeSet<u32> =
                now.ports.keys().chain(now.domain_vlans.keys()).copied().collect();
            if let Some(seen) = &self.seen
                && self.host.has_changed_silently(seen, &ports)?
            {
                self.changed_since.get_or_insert_with(Instant::now);
            }
        }
        let settled = self.changed_since.is_some_and(|since| since.elapsed() >= SETTLE);
        if settled && Instant::now() >= self.rested_at {
            self.look_again()?;
        }
        Ok(())
    }

    /// Brings the data plane in line with the kernel's tables.
    fn look_again(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        self.changed_since = None;
        let mut wait = Duration::ZERO;
        // Move the file out instead of cloning it: it is large and does not change here.
        if let Some(file) = self.file.take() {
            let done = self.follow_kernel(&file);
            self.file = Some(file);
            match done {
                Ok(()) => self.failures = 0,
                Err(error) => wait = self.retry(&error),
            }
        }
        // The first failure is repeated at once.
        if self.failures != 1 {
            wait = wait.max(started.elapsed() * REST);
        }
        self.rested_at = Instant::now() + wait;
        Ok(())
    }

    /// Closes new interfaces after a failed attempt to follow the kernel, and returns the time until
    /// the next one. The current state stays.
    fn retry(&mut self, error: &Error) -> Duration {
        if self.failures == 0 {
            self.failing_since = Instant::now();
        }
        self.failures += 1;
        let why = api::in_one_line(error);
        if self.failures == 1 {
            // For example, an interface was deleted between the read and the change.
            tracing::debug!("the kernel is read again: {why}");
        } else {
            self.warn_once(format!("the data plane stays as it is: {why}"));
        }
        let closed = self.look(None).and_then(|seen| {
            let mut closed = self.close_by_rules(&seen);
            // Not sooner, for interfaces that come and go: it is not undone.
            if self.failing_since.elapsed() >= SILENT_EVERY {
                closed = closed.and(self.close_ports(&seen));
            }
            closed
        });
        if let Err(error) = closed {
            let why = api::in_one_line(&error);
            tracing::warn!("new interfaces may reach SIDs until the next attempt: {why}");
        }
        self.changed_since.get_or_insert_with(Instant::now);
        let doublings = self.failures.saturating_sub(1).min(16);
        let wait = SETTLE * ((1 << doublings) - 1);
        wait.min(SILENT_EVERY)
    }

    /// Applies the file to the kernel's new state; does nothing if that state is unchanged.
    fn follow_kernel(&mut self, file: &File) -> Result<(), Error> {
        let seen = self.look(None)?;
        let is_same = self.seen.as_ref() == Some(&seen.kernel);
        let is_same = is_same && self.plane.current().passes_to_functions(&seen.passing);
        // It may have been set up again before that state was recorded.
        let is_same = is_same && !seen.kernel.links.iter().any(|link| self.is_open_again(link));
        if is_same && self.host.is_intact(&seen) && self.plane.is_intact() {
            self.plane.set_exact(seen.exact);
            self.set_locked_mtus(seen.locked_mtus);
            return Ok(());
        }
        let closed = std::mem::take(&mut self.closed);
        if let Err(error) = self.change_to(seen, file) {
            self.closed.extend(closed);
            return Err(error);
        }
        self.logged[0] = std::mem::take(&mut self.logged[1]);
        Ok(())
    }

    /// The fallible part of [`Reconciler::follow_kernel`].
    fn change_to(&mut self, mut seen: Seen, file: &File) -> Result<(), Error> {
        loop {
            let wanted = self.wanted(file, seen, Ports::Present)?;
            let Err(error) = self.install(wanted, None, file) else { return Ok(()) };
            self.close_failed(error, Ports::Present)?;
            seen = self.look(None)?;
        }
    }

    /// Handles an event, and returns the state that it affects.
    fn handle(&mut self, event: &Event) -> Change {
        let routes = Change { routes: true, ..Change::default() };
        match event {
            Event::Neighbor(neighbor) => {
                Change { routes: self.record_neighbor(neighbor), ..Change::default() }
            }
            Event::NeighborGone { interface, address } => {
                let known = self.neighbors.remove(&(*interface, *address)).is_some();
                Change { routes: known, ..Change::default() }
            }
            Event::Route(route) | Event::RouteGone(route) => {
                let srv6 =
                    matches!(route.encap, Some(Encap::Seg6 { .. } | Encap::Seg6Local { .. }));
                let exact = route.next_hops.len() > 1;
                // A plain route may be more specific than a steered prefix.
                let tables = srv6 || exact || self.has_imported();
                // A route that is replaced is not reported: it may have been the one with the lock.
                let tables = tables || route.locks_mtu || self.has_locked_mtus;
                Change { tables, exact, ..routes }
            }
            Event::Link(_) | Event::LinkGone(_) => Change { tables: true, ..routes },
            Event::RoutesChanged | Event::Rules => Change { tables: true, exact: true, ..routes },
            Event::Overrun => {
                // Removals may be among the lost events: without this, the records would stay.
                self.neighbors.clear();
                Change { tables: true, exact: true, ..routes }
            }
        }
    }

    /// Sets whether a route has a locked MTU.
    pub(super) fn set_locked_mtus(&mut self, locked: bool) {
        self.has_locked_mtus = locked;
        self.plane.set_locked_mtus(locked);
    }

    /// Returns true if kernel routes were imported, or would have been but for a conflicting entry.
    fn has_imported(&self) -> bool {
        self.imported.taken > 0 || !self.imported.left.is_empty()
    }

    /// Records a neighbor. Returns true if an adjacency with it may be wrong now.
    fn record_neighbor(&mut self, neighbor: &Neighbor) -> bool {
        let key = (neighbor.interface, neighbor.address);
        // The kernel probes a stale neighbor only for packets that it sends itself.
        if self.which == Which::Xdp
            && neighbor.state == NeighborState::Stale
            && self.plane.current().has_interface(neighbor.interface)
            && let Err(error) = self.host.probe(key.0, key.1)
        {
            tracing::debug!("{}", api::in_one_line(&error));
        }
        let mac = neighbor.mac.filter(|_| neighbor.state.is_valid());
        let before = self.neighbors.insert(key, mac);
        // A neighbor without a record may have existed before this reconciler started.
        before.is_none_or(|before| before.is_some() && before != mac)
    }
}

/// The state that an event affects.
#[derive(Clone, Copy, Default)]
struct Change {
    /// The forwarding path of packets.
    routes: bool,
    /// Possibly the program's tables.
    tables: bool,
    /// Possibly the inputs of a route lookup besides the destination.
    exact: bool,
}
