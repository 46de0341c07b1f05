//! The XDP data plane: the program's tables, and the program on the ports.
//!
//! An active program outlives the daemon: its attachments are pinned, and the next daemon fills its
//! own tables before it replaces the program.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use bpf::attach::{Attached, Mode};
use bpf::srv6::Sizes;
use bpf::srv6::types::reason;
use bpf::{Count, Drops, Held, Srv6};
use ipnet::Ipv6Net;
use model::dataplane::{File, Name};
use netlink::Handle;

use super::functions::guards::Guards;
use super::functions::netfilter;
use super::functions::proxies::{self, Backs};
use super::pins::Pins;
use super::tables::Tables;
use super::tables::{proxy_count, rings};
use super::tracing::Tracing;
use crate::forwarding::{Forwarding, TABLE_TENANTS};
use crate::{Counter, Dataplane, Error, Trace};

/// SRv6 in XDP, on ports of the calling thread's namespace.
pub struct Xdp {
    pub(super) tables: Tables,
    pub(super) attached: BTreeMap<u32, Attached>,
    /// Actual XDP modes of the ports, as reported by the kernel.
    pub(super) modes: BTreeMap<u32, Mode>,
    /// XDP modes requested by the last file.
    pub(super) wanted: BTreeMap<Name, Mode>,
    pub(super) pins: Pins,
    pub(super) guards: Guards,
    pub(super) backs: Backs,
    pub(super) handle: Handle,
    pub(super) trace: Option<Tracing>,
    /// True if the program's watchdog timer outlives this process.
    watched: bool,
}

impl Xdp {
    /// Loads the program. Active ports of an earlier daemon keep its program until the first change
    /// replaces it. `pins` is the folder with their pins.
    pub fn load(pins: &Path) -> Result<Self, Error> {
        let pins = Pins::prepare(pins)?;
        Ok(Self {
            tables: Self::empty(Sizes::default(), None)?,
            guards: Guards::default(),
            backs: Backs::default(),
            attached: BTreeMap::new(),
            modes: BTreeMap::new(),
            wanted: BTreeMap::new(),
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
    fn grow(&mut self, sizes: Sizes) -> Result<(), Error> {
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
        let done = done.and_then(|()| self.put_on_all(tables.program().program()));
        let done = done
            .and_then(|()| proxies::attach(&tables, &mut self.backs, &self.pins, &mut self.handle));
        if let Err(error) = done {
            // The previous state worked before. The first error is reported.
            let _ = self.attach_own_functions();
            let _ = self.put_on_all(self.tables.program().program());
            return Err(error);
        }
        self.tables = tables;
        self.watched = false;
        if !self.attached.is_empty() {
            self.keep_watch()?;
        }
        Ok(())
    }

    /// Replaces the program on all ports. Continues after a failure, and returns the first error.
    pub(super) fn put_on_all(&self, program: BorrowedFd<'_>) -> Result<(), Error> {
        let mut first = Ok(());
        for attached in self.attached.values() {
            first = first.and(attached.replace(program));
        }
        Ok(first?)
    }

    /// Performs the part of a change that may fail. On an error, tables and ports are unchanged.
    fn change_tables(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error> {
        let (program, handle) = (self.tables.program(), &mut self.handle);
        netfilter::prepare(&wanted, program, &mut self.guards, &self.pins, handle)?;
        proxies::prepare(&wanted, program, handle)?;
        let before = self.tables.change_to(wanted)?;
        let (now, program) = (self.tables.now(), self.tables.program());
        let done = netfilter::attach(now, program, &mut self.guards, &self.pins, &mut self.handle);
        let done = done.and_then(|()| self.attach_to(&before, file));
        if let Err(error) = done.and_then(|()| self.attach_own_proxies()) {
            // The first error is reported. The previous state fits, since it was installed before.
            let _ = self.tables.change_to(before);
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

    fn tidy_functions(&mut self) -> Result<(), Error> {
        if !netfilter::are_in(self.tables.now()) {
            self.guards.clear();
        }
        netfilter::tidy(self.tables.now(), &self.pins, &mut self.handle)?;
        proxies::tidy(self.tables.now(), &mut self.backs, &self.pins, &mut self.handle)
    }

    /// Returns true if no port has a program of this daemon or of an earlier one.
    fn is_idle(&self) -> bool {
        self.attached.is_empty() && self.pins.attached().is_ok_and(|left| left.is_empty())
    }

    /// Makes the program's watchdog timer outlive this process, replacing that of an earlier
    /// program. Called once the program is on the ports.
    fn keep_watch(&mut self) -> Result<(), Error> {
        if !self.watched {
            self.tables.program().keep_watch(&self.pins.watch())?;
            self.watched = true;
        }
        if netfilter::are_in(self.tables.now()) {
            self.tables.program().keep_held(&self.pins.held())?;
        }
        Ok(())
    }
}

impl Dataplane for Xdp {
    fn change_to(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error> {
        let sizes = sizes_of(file, &wanted);
        if !sizes.fit_into(self.tables.program().sizes()) {
            self.grow(sizes)?;
        }
        let changed = self.change_tables(wanted, file);
        let mut functions = Ok(());
        // After a failure, the program of an earlier daemon stays active.
        if changed.is_ok() || !self.attached.is_empty() || self.is_idle() {
            functions = self.tidy_functions();
        }
        changed?;
        // The forwarding state has changed. Steps that fail from here on are repeated by the next
        // change.
        for done in [self.leave_others(), self.keep_watch(), functions] {
            if let Err(error) = done {
                tracing::warn!("something of the change before is left over: {error}");
            }
        }
        self.forget_old_trace();
        self.modes = self.modes_now().unwrap_or_default();
        self.wanted = file.ports.iter().map(|(name, port)| (name.clone(), mode(port))).collect();
        Ok(())
    }

    fn now(&self) -> &Forwarding {
        self.tables.now()
    }

    fn leave(&mut self) -> Result<(), Error> {
        // The tracer is removed with the ports.
        let _ = self.end_trace();
        // The program of a port is detached when its pin and this descriptor are gone.
        self.pins.clear()?;
        self.attached.clear();
        self.modes.clear();
        self.wanted.clear();
        self.watched = false;
        self.tables.change_to(Forwarding::default())?;
        self.tidy_functions()
    }

    fn end(&mut self) -> Result<(), Error> {
        let ended = self.end_trace();
        let mut functions = Ok(());
        if self.is_idle() {
            // No packets are sent there any more.
            functions = netfilter::tidy(&Forwarding::default(), &self.pins, &mut self.handle)
                .and_then(|()| self.backs.end(&self.pins, &mut self.handle));
        }
        self.pins.end().and(functions).and(ended)
    }

    fn count(&self, of: Counter<'_>) -> Option<Count> {
        let of_reason = |counter| Some(self.tables.program().count(counter));
        match of {
            Counter::Sid(sid) => self.tables.count_of_sid(sid),
            Counter::Returned(sid) => self.tables.count_of_returned(sid),
            Counter::Policy(id) => self.tables.count_of_policy(id),
            Counter::Left(number) => of_reason(number),
            Counter::Dropped(number) => of_reason(reason::REASONS.0 + number),
        }
    }

    fn drops(&self, sid: &Ipv6Net) -> Option<Drops> {
        self.tables.drops(sid)
    }

    fn mode(&self, port: u32) -> Option<Mode> {
        self.modes.get(&port).copied()
    }

    fn finds_tables(&self) -> bool {
        self.tables.program().finds_tables()
    }

    fn beat(&mut self) -> Vec<(u32, IpAddr)> {
        self.tables.program().beat();
        self.backs.leave_old(&self.pins);
        self.tables.program().missing_neighbours()
    }

    fn forget_routes(&mut self) {
        self.tables.program().begin_generation();
    }

    fn keeps(&mut self) -> bool {
        netfilter::are_led(self.tables.now(), &self.guards, &mut self.handle)
            && proxies::are_led(&self.tables, &mut self.handle)
    }

    fn set_exact(&mut self, exact: bool) {
        self.tables.program().set_exact(exact);
    }

    fn trace(&mut self) -> Option<&mut dyn Trace> {
        Some(self)
    }
}

/// Returns the XDP mode that a file requests for a port.
pub(super) fn mode(port: &model::dataplane::Port) -> Mode {
    match port.mode {
        model::dataplane::Mode::Native => Mode::Native,
        model::dataplane::Mode::Generic => Mode::Generic,
        model::dataplane::Mode::Auto => Mode::Auto,
    }
}

/// Returns the sizes of the tables for a file.
fn sizes_of(file: &File, forwarding: &Forwarding) -> Sizes {
    let limits = &file.limits;
    Sizes {
        sids: limits.sids,
        prefixes: limits.prefixes,
        policies: limits.policies,
        lists: limits.lists,
        // Each policy may have several lists.
        spreads: limits.policies,
        // A later daemon does not reuse the numbers of its predecessor.
        tenants: 2 * limits.tenants + TABLE_TENANTS,
        attachments: (forwarding.attachments.len() as u32).next_power_of_two().max(4096),
        slots: if netfilter::are_in(forwarding) { limits.held.next_power_of_two() } else { 1 },
        proxies: proxy_count(forwarding),
        rings: rings(forwarding),
    }
}
