//! The XDP data plane: the program's tables, and the program on the ports.
//!
//! An active program outlives the daemon: its attachments are pinned, and the next daemon fills its
//! own tables before it replaces the program.

use std::collections::BTreeMap;
use std::path::Path;

use bpf::srv6::Sizes;
use bpf::{Held, Srv6};
use model::dataplane::File;
use netlink::Handle;

use super::attach::{Attachments, Source};
use super::filters::{Filters, NewFilters};
use super::functions::guards::Guards;
use super::functions::netfilter;
use super::functions::proxies::{self, Backs};
use super::pins::{Pins, remove};
use super::tables::Tables;
use super::tracing::Tracing;
use crate::Error;
use crate::forwarding::Forwarding;

/// SRv6 in XDP, on ports of the calling thread's namespace.
pub struct Xdp {
    pub(super) tables: Tables,
    pub(super) ports: Attachments,
    pub(super) filters: Filters,
    pub(super) pins: Pins,
    pub(super) guards: Guards,
    pub(super) backs: Backs,
    pub(super) handle: Handle,
    pub(super) trace: Option<Tracing>,
    /// True if the program's watchdog timer outlives this process.
    pub(super) watched: bool,
}

impl Xdp {
    /// Loads the program. Active ports of an earlier daemon keep its program until the first change
    /// replaces it. `pins` is the directory with their pins.
    pub fn load(pins: &Path) -> Result<Self, Error> {
        let pins = Pins::prepare(pins)?;
        Ok(Self {
            tables: Self::empty(Sizes::default(), None)?,
            guards: Guards::default(),
            backs: Backs::default(),
            ports: Attachments::default(),
            filters: Filters::default(),
            pins,
            handle: Handle::new()?,
            trace: None,
            watched: false,
        })
    }

    /// Loads a program with empty tables. `held` is the service functions' state of an earlier
    /// program.
    fn empty(sizes: Sizes, held: Option<&Held>) -> Result<Tables, Error> {
        let srv6 = Srv6::load_after(sizes, held)?;
        // It is not known yet which inputs routes depend on.
        srv6.set_exact(true);
        Ok(Tables::new(srv6))
    }

    /// Returns the program's tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Replaces the active program, which may belong to an earlier daemon, by one with larger
    /// tables. Counters restart from zero.
    pub(super) fn grow(&mut self, sizes: Sizes) -> Result<(), Error> {
        // The tracer refers to the program that is replaced.
        self.end_trace()?;
        let held = Held::pinned(&self.pins.held());
        let mut tables = Self::empty(sizes.or(self.tables.program().sizes()), held.as_ref())?;
        tables.change_to(self.tables.now().clone())?;
        let done = netfilter::attach(
            tables.now(),
            tables.program(),
            &mut self.guards,
            &self.pins,
            &mut self.handle,
        );
        let filtered = self.filtered();
        let done = done.and_then(|()| {
            let handle = &mut self.handle;
            self.filters.replace(tables.program(), &filtered, &self.pins, handle)
        });
        let done = done.and_then(|()| self.ports.replace_all(tables.program().program()));
        let done = done
            .and_then(|()| proxies::attach(&tables, &mut self.backs, &self.pins, &mut self.handle));
        if let Err(error) = done {
            // The previous state worked before. The first error is reported.
            let _ = self.attach_own_functions();
            let program = self.tables.program();
            let _ = self.filters.replace(program, &filtered, &self.pins, &mut self.handle);
            let _ = self.ports.replace_all(self.tables.program().program());
            return Err(error);
        }
        self.tables = tables;
        self.watched = false;
        if !self.ports.is_empty() {
            self.keep_watch()?;
        }
        Ok(())
    }

    /// Returns the interfaces of the current state that have a filter. The others are gone.
    fn filtered(&self) -> BTreeMap<u32, String> {
        let mut all = self.tables.now().filtered();
        all.retain(|index, _| self.filters.has(*index));
        all
    }

    /// Forgets the ports that are gone. Other interfaces may have their indices now.
    pub(super) fn forget_gone(&mut self) -> Result<(), Error> {
        let links = self.handle.links()?;
        for gone in self.ports.forget_gone(&links) {
            self.filters.forget(gone, &self.pins);
        }
        self.filters.forget_gone(&links, &self.pins);
        Ok(())
    }

    /// Performs the part of a change that may fail. On an error, tables and ports are unchanged.
    pub(super) fn change_tables(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error> {
        let (program, handle) = (self.tables.program(), &mut self.handle);
        netfilter::prepare(&wanted, program, &mut self.guards, &self.pins, handle)?;
        proxies::prepare(&wanted, program, handle)?;
        let before = self.tables.change_to(wanted)?;
        let (now, program) = (self.tables.now(), self.tables.program());
        let done = netfilter::attach(now, program, &mut self.guards, &self.pins, &mut self.handle);
        // Before the program: the kernel then gets no packet without it.
        let (mut new_filters, mut new_ports) = (NewFilters::default(), Vec::new());
        let done = done.and_then(|()| {
            let filtered = now.filtered();
            new_filters = self.filters.put(program, &filtered, &self.pins, &mut self.handle)?;
            let from = Source { program: program.program(), pins: &self.pins };
            self.ports.attach_to(from, &now.ports, file, &mut self.handle, &mut new_ports)
        });
        if let Err(error) = done.and_then(|()| self.attach_own_proxies()) {
            // The first error is reported. The previous state fits, since it was installed before.
            self.ports.undo(new_ports);
            let _ = self.tables.change_to(before);
            self.filters.undo(new_filters, &self.pins);
            return Err(error);
        }
        Ok(())
    }

    fn attach_own_functions(&mut self) -> Result<(), Error> {
        let (now, program) = (self.tables.now(), self.tables.program());
        netfilter::attach(now, program, &mut self.guards, &self.pins, &mut self.handle)?;
        self.attach_own_proxies()
    }

    fn attach_own_proxies(&mut self) -> Result<(), Error> {
        proxies::attach(&self.tables, &mut self.backs, &self.pins, &mut self.handle)
    }

    pub(super) fn tidy_functions(&mut self) -> Result<(), Error> {
        if !netfilter::are_in(self.tables.now()) {
            self.guards.clear();
        }
        netfilter::tidy(self.tables.now(), &self.pins, &mut self.handle)?;
        proxies::tidy(self.tables.now(), &mut self.backs, &self.pins, &mut self.handle)
    }

    /// Returns true if no port has a program of this daemon or of an earlier one.
    pub(super) fn is_idle(&self) -> bool {
        self.ports.is_empty() && self.pins.attached().is_ok_and(|left| left.is_empty())
    }

    /// Makes the program's watchdog timer outlive this process, replacing that of an earlier
    /// program. Called once the program is on the ports.
    pub(super) fn keep_watch(&mut self) -> Result<(), Error> {
        if !self.watched {
            self.tables.program().keep_watch(&self.pins.watch())?;
            self.watched = true;
        }
        if netfilter::are_in(self.tables.now()) {
            self.tables.program().keep_held(&self.pins.held())?;
        }
        Ok(())
    }

    /// Replaces the tracer by the program.
    pub(super) fn end_trace(&mut self) -> Result<(), Error> {
        // The tracer is dropped last: without it, packets could not reach the program.
        let Some(_tracing) = self.trace.take() else { return Ok(()) };
        // If this fails, the pin remains, and packets reach the program through the tracer.
        self.ports.replace_all(self.tables.program().program())?;
        let _ = remove(&self.pins.trace());
        Ok(())
    }

    /// Removes the pin of a daemon that was killed during a trace. No port refers to it any more.
    pub(super) fn forget_old_trace(&self) {
        if self.trace.is_none() {
            let _ = remove(&self.pins.trace());
        }
    }
}
