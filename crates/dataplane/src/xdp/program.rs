//! The data plane in XDP: the program's tables, and the program on the ports.
//!
//! What is at work outlives the daemon: ports are pinned, and the next daemon fills tables of its
//! own before it puts its program in place of the old one.

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

use super::functions;
use super::guards::Guards;
use super::pins::Pins;
use super::proxies::{self, Backs};
use super::tracing::Tracing;
use super::{Forwarding, TABLE_TENANTS, Tables};
use crate::{Counter, Dataplane, Error};

/// SRv6 in XDP, on ports of the calling thread's namespace.
pub struct Xdp {
    pub(super) tables: Tables,
    pub(super) attached: BTreeMap<u32, Attached>,
    /// Where the ports' programs run, as the kernel says.
    pub(super) modes: BTreeMap<u32, Mode>,
    /// Where the last file wanted them to.
    pub(super) wanted: BTreeMap<Name, Mode>,
    pub(super) pins: Pins,
    pub(super) guards: Guards,
    pub(super) backs: Backs,
    pub(super) handle: Handle,
    pub(super) trace: Option<Tracing>,
    /// Whether the program's watch outlives this process.
    watched: bool,
}

impl Xdp {
    /// Loads the program. Ports that an earlier daemon left at work stay with its program until the
    /// first change puts the new one in its place. `pins` is the folder of what keeps them.
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

    /// The tables of a program of its own; `held` is what an earlier one has with service functions.
    fn empty(sizes: Sizes, held: Option<&Held>) -> Result<Tables, Error> {
        let srv6 = Srv6::load_after(sizes, held)?;
        // Nobody has looked yet at what a packet's way depends on.
        srv6.set_exact(true);
        Ok(Tables::new(srv6))
    }

    /// The program's tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Puts a program with larger tables in place of the one that is at work, which may be an
    /// earlier daemon's. Counters begin anew.
    fn grow(&mut self, sizes: Sizes) -> Result<(), Error> {
        // It stands in front of the program that goes.
        self.end_trace()?;
        let held = Held::pinned(&self.pins.held());
        let mut tables = Self::empty(sizes.or(self.tables.program().sizes()), held.as_ref())?;
        tables.change_to(self.tables.now().clone())?;
        let done = functions::attach(
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
            // It was there a moment ago; the first error is the one to report.
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

    /// Puts a program in place of the one that is on the ports; goes on where it fails, and tells
    /// the first failure.
    pub(super) fn put_on_all(&self, program: BorrowedFd<'_>) -> Result<(), Error> {
        let mut first = Ok(());
        for attached in self.attached.values() {
            first = first.and(attached.replace(program));
        }
        Ok(first?)
    }

    /// What may fail of a change. On an error the tables and the ports are as they were.
    fn change_tables(&mut self, wanted: Forwarding, file: &File) -> Result<(), Error> {
        functions::prepare(&wanted, self)?;
        proxies::prepare(&wanted, self)?;
        let before = self.tables.change_to(wanted)?;
        let (now, program) = (self.tables.now(), self.tables.program());
        let done = functions::attach(now, program, &mut self.guards, &self.pins, &mut self.handle);
        let done = done.and_then(|()| self.attach_to(&before, file));
        if let Err(error) = done.and_then(|()| self.attach_own_proxies()) {
            // The first error is the one to report; what was there a moment ago fits.
            let _ = self.tables.change_to(before);
            return Err(error);
        }
        Ok(())
    }

    fn attach_own_functions(&mut self) -> Result<(), Error> {
        let (now, program) = (self.tables.now(), self.tables.program());
        functions::attach(now, program, &mut self.guards, &self.pins, &mut self.handle)?;
        self.attach_own_proxies()
    }

    fn attach_own_proxies(&mut self) -> Result<(), Error> {
        proxies::attach(&self.tables, &mut self.backs, &self.pins, &mut self.handle)
    }

    fn tidy_functions(&mut self) -> Result<(), Error> {
        if !functions::are_in(self.tables.now()) {
            self.guards.clear();
        }
        functions::tidy(self.tables.now(), &self.pins, &mut self.handle)?;
        proxies::tidy(self.tables.now(), &mut self.backs, &self.pins, &mut self.handle)
    }

    /// Whether no program is on any port, this daemon's or an earlier one's.
    fn is_idle(&self) -> bool {
        self.attached.is_empty() && self.pins.attached().is_ok_and(|left| left.is_empty())
    }

    /// Lets the program's watch outlive this process. Once the program is on the ports: it takes the
    /// place of the earlier program's.
    fn keep_watch(&mut self) -> Result<(), Error> {
        if !self.watched {
            self.tables.program().keep_watch(&self.pins.watch())?;
            self.watched = true;
        }
        if functions::are_in(self.tables.now()) {
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
        // What an earlier daemon left at work goes on after a failure.
        if changed.is_ok() || !self.attached.is_empty() || self.is_idle() {
            functions = self.tidy_functions();
        }
        changed?;
        // What forwards is changed: what fails from here on is done with the next change.
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
        // What stands in front goes with the ports.
        let _ = self.end_trace();
        // With its pin and this end of it a port's program goes.
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
            // Nothing leads packets there.
            functions = functions::tidy(&Forwarding::default(), &self.pins, &mut self.handle)
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
        functions::are_led(self.tables.now(), &self.guards, &mut self.handle)
            && proxies::are_led(&self.tables, &mut self.handle)
    }

    fn set_exact(&mut self, exact: bool) {
        self.tables.program().set_exact(exact);
    }

    fn xdp(&mut self) -> Option<&mut Xdp> {
        Some(self)
    }
}

/// Where a file wants a port's program.
pub(super) fn mode(port: &model::dataplane::Port) -> Mode {
    match port.mode {
        model::dataplane::Mode::Native => Mode::Native,
        model::dataplane::Mode::Generic => Mode::Generic,
        model::dataplane::Mode::Auto => Mode::Auto,
    }
}

/// The tables' sizes for a file.
fn sizes_of(file: &File, forwarding: &Forwarding) -> Sizes {
    let limits = &file.limits;
    Sizes {
        sids: limits.sids,
        prefixes: limits.prefixes,
        policies: limits.policies,
        lists: limits.lists,
        // Any of them may have several lists.
        spreads: limits.policies,
        // A later daemon spares the numbers of the one before.
        tenants: 2 * limits.tenants + TABLE_TENANTS,
        attachments: (forwarding.attachments.len() as u32).next_power_of_two().max(4096),
        slots: if functions::are_in(forwarding) { limits.held.next_power_of_two() } else { 1 },
        proxies: proxies::count(forwarding),
        rings: proxies::rings(forwarding),
    }
}
