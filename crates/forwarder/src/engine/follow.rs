//! Following the kernel: its changes are heard as they come, and its tables looked at as a whole once
//! they have settled.

use std::time::{Duration, Instant};

use model::dataplane::{Dataplane as Which, File};
use netlink::{Encap, Event, Neighbour, NeighbourState};

use super::{Engine, Ports, TICK};
use crate::Error;

/// How long changes of the kernel's tables are waited for to settle.
pub(super) const SETTLE: Duration = Duration::from_millis(20);
/// A look at large tables takes long: the next comes after this many times as long.
const REST: u32 = 4;
/// How often the kernel is asked for that of which it sends no events: its outer source address
/// (`ip sr tunsrc`), and where it requires an HMAC.
const SILENT_EVERY: Duration = Duration::from_secs(1);

impl Engine {
    /// Waits for events for a tick, and follows them.
    pub(crate) fn follow(&mut self) -> Result<(), Error> {
        self.go_on_tracing();
        for (interface, address) in self.plane.beat() {
            if let Err(error) = self.host.probe(interface, address) {
                tracing::debug!("{}", api::in_one_line(&error));
            }
        }
        if self.checks.changed()
            && let Err(error) = self.host.announce(&self.checks.up())
        {
            tracing::warn!(
                "routes of functions are not as they should: {}",
                api::in_one_line(&error)
            );
            // The next look makes them so: it begins with all that it does at first.
            self.seen = None;
            self.changed_since.get_or_insert_with(Instant::now);
        }
        let mut event = self.host.event(TICK)?;
        let mut generation = false;
        while let Some(one) = event {
            let change = self.heed(&one);
            generation |= change.routes;
            if change.exact {
                // Until the next look at the tables says otherwise.
                self.plane.set_exact(true);
            }
            if change.tables && self.changed_since.is_none() {
                self.changed_since = Some(Instant::now());
            }
            event = self.host.event(Duration::ZERO)?;
        }
        if generation {
            self.plane.forget_routes();
        }
        if self.looked_for_silent.elapsed() >= SILENT_EVERY {
            self.looked_for_silent = Instant::now();
            let ports: Vec<u32> = self.plane.now().ports.keys().copied().collect();
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

    /// Brings the tables in line with the kernel's.
    fn look_again(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        self.changed_since = None;
        // Large, and not changed.
        if let Some(file) = self.file.take() {
            let done = self.follow_kernel(&file);
            self.file = Some(file);
            if let Err(error) = done {
                // Such as a port that is gone, or a route too many: what is there stays, and the
                // next change brings another look.
                tracing::warn!("the data plane stays as it is: {}", api::in_one_line(&error));
            }
        }
        self.rested_at = Instant::now() + started.elapsed() * REST;
        Ok(())
    }

    /// Does what the file asks for in the kernel's new state; nothing if that is no other one.
    fn follow_kernel(&mut self, file: &File) -> Result<(), Error> {
        let seen = self.look(None)?;
        let is_same = self.seen.as_ref() == Some(&seen.kernel);
        let is_same = is_same && self.plane.now().passes_to_functions(&seen.passing);
        if is_same && self.host.keeps(&seen) && self.plane.keeps() {
            self.plane.set_exact(seen.exact);
            return Ok(());
        }
        let wanted = self.wanted(file, seen, Ports::Present)?;
        self.install(wanted, None, file)
    }

    /// What an event means.
    fn heed(&mut self, event: &Event) -> Change {
        let routes = Change { routes: true, ..Change::default() };
        match event {
            Event::Neighbour(neighbour) => {
                Change { routes: self.know(neighbour), ..Change::default() }
            }
            Event::NeighbourGone { interface, address } => {
                let known = self.neighbours.remove(&(*interface, *address)).is_some();
                Change { routes: known, ..Change::default() }
            }
            Event::Route(route) | Event::RouteGone(route) => {
                let srv6 =
                    matches!(route.encap, Some(Encap::Seg6 { .. } | Encap::Seg6Local { .. }));
                let exact = route.next_hops.len() > 1;
                // A plain route may cut into a steered prefix.
                Change { tables: srv6 || exact || self.has_imported(), exact, ..routes }
            }
            Event::Link(_) | Event::LinkGone(_) => Change { tables: true, ..routes },
            Event::RoutesChanged | Event::Rules | Event::Overrun => {
                Change { tables: true, exact: true, ..routes }
            }
        }
    }

    /// Whether routes of the kernel's were taken over, or would have been but for another.
    fn has_imported(&self) -> bool {
        self.imported.taken > 0 || !self.imported.left.is_empty()
    }

    /// Whether packets leave by this interface, or by a port below it.
    fn is_ours(&self, interface: u32) -> bool {
        let now = self.plane.now();
        now.ports.contains_key(&interface) || now.uppers.contains_key(&interface)
    }

    /// Remembers a neighbour. True if an adjacency with it may be wrong now.
    fn know(&mut self, neighbour: &Neighbour) -> bool {
        let key = (neighbour.interface, neighbour.address);
        // The kernel asks again only for packets that it sends itself.
        if self.which == Which::Xdp
            && neighbour.state == NeighbourState::Stale
            && self.is_ours(neighbour.interface)
            && let Err(error) = self.host.probe(key.0, key.1)
        {
            tracing::debug!("{}", api::in_one_line(&error));
        }
        let mac = neighbour.mac.filter(|_| neighbour.state.is_valid());
        let before = self.neighbours.insert(key, mac);
        // One that is not known yet may have been there before this engine was.
        before.is_none_or(|before| before.is_some() && before != mac)
    }
}

/// What an event changes.
#[derive(Clone, Copy, Default)]
struct Change {
    /// Where packets go.
    routes: bool,
    /// Possibly the program's tables.
    tables: bool,
    /// Possibly what a packet's way depends on.
    exact: bool,
}
