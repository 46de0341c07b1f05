//! One data plane at work: what its file and the kernel say, kept in the program's tables.
//!
//! The engine owns the tables and runs on a thread of its own. It hears of every change in the
//! kernel. Each begins a new generation of adjacencies at once; those that concern SRv6 routes,
//! links or addresses are followed by a look at the kernel's tables as a whole, once the changes
//! have settled.

mod ports;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use api::v1;
use bpf::attach::{Attached, Mode, prepare_pins, remove_pins};
use bpf::srv6::Sizes;
use bpf::{Filter, Srv6};
use dataplane::xdp::{
    Difference, Forwarding, Imported, Kernel, Links, Port, SlowPath, TABLE_TENANTS, TableTenants,
    Tables, TenantId, Tenants, import, leave_own, resolve,
};
use model::dataplane::{File, Table};
use netlink::{Encap, Event, Mac, Monitor, Neighbour, NeighbourState};

use crate::kernel::{KernelSide, Seen};
use crate::trace::{Sink, Trace};
use crate::{Error, tenants};

/// How long changes of the kernel's tables are waited for to settle.
const SETTLE: Duration = Duration::from_millis(20);
/// A look at large tables takes long: the next comes after this many times as long.
const REST: u32 = 4;
/// How often the kernel is asked for its outer source address (`ip sr tunsrc`), of which it gives no
/// events.
const SOURCE_EVERY: Duration = Duration::from_secs(1);
/// The pin of the program's watch, beside those of ports. No interface is called so.
const WATCH: &str = "watch:";
/// The pin of the way from a tracer to the program.
const TRACE: &str = "watch:trace";
/// How long the engine waits for events at a time: orders are answered as fast, and the program's
/// watch (LIMIT_TICK_NS) hears of the engine several times.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A data plane.
pub(crate) struct Engine {
    tables: Tables,
    attached: BTreeMap<u32, Attached>,
    /// Where the ports' programs run, as the kernel says.
    modes: BTreeMap<u32, Mode>,
    pins: PathBuf,
    kernel: KernelSide,
    /// What the kernel said before the last change.
    seen: Option<Kernel>,
    monitor: Monitor,
    file: Option<File>,
    tenants: Tenants,
    table_tenants: TableTenants,
    imported: Imported,
    /// Since when the tables may differ from what the file and the kernel say.
    changed_since: Option<Instant>,
    /// When the next look at the kernel's tables may begin.
    rested_at: Instant,
    neighbours: HashMap<(u32, IpAddr), Option<Mac>>,
    trace: Option<Trace>,
    /// When it was last asked for the outer source address.
    looked_for_source: Instant,
    /// Whether the program's watch outlives this process.
    watched: bool,
}

/// Which of a file's ports have to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ports {
    /// All, by the names that the file gives.
    All,
    /// Those that are: one that has gone may come back, one that was renamed is still the same.
    Present,
}

/// What is to be installed, and whose numbers it uses.
struct Wanted {
    forwarding: Forwarding,
    imported: Imported,
    tenants: Tenants,
    table_tenants: TableTenants,
    slow_path: SlowPath,
    seen: Seen,
}

fn name(tenants: &Tenants, tables: &TableTenants, number: TenantId) -> String {
    match (tenants.name(number), tables.table(number)) {
        (Some(name), _) => name.into(),
        (None, Some(table)) => format!("table {table}"),
        (None, None) => format!("#{number}"),
    }
}

impl Engine {
    /// Loads the program. Ports that an earlier engine left at work stay with its program until
    /// the first [`Engine::apply`] puts the new one in its place.
    pub(crate) fn new(state: &std::path::Path) -> Result<Self, Error> {
        // Before the first listing: no change between the two is missed.
        let monitor = Monitor::new()?;
        let pins = state.join("bpf");
        prepare_pins(&pins)?;
        let srv6 = Srv6::load(Sizes::default())?;
        Ok(Self {
            tables: Tables::new(srv6),
            attached: BTreeMap::new(),
            modes: BTreeMap::new(),
            pins,
            kernel: KernelSide::new(state)?,
            seen: None,
            monitor,
            file: None,
            tenants: Tenants::default(),
            table_tenants: TableTenants::default(),
            imported: Imported::default(),
            changed_since: None,
            rested_at: Instant::now(),
            neighbours: HashMap::new(),
            trace: None,
            looked_for_source: Instant::now(),
            watched: false,
        })
    }

    /// What `file` would change, the first `most` of it listed.
    pub(crate) fn plan(&mut self, file: &File, most: usize) -> Result<Difference, Error> {
        let seen = self.kernel.look(self.tables.program())?;
        let wanted = self.wanted(file, seen, Ports::All)?;
        Ok(self.difference(&wanted, most))
    }

    /// Makes the data plane what `file` says. On an error nothing has changed.
    pub(crate) fn apply(
        &mut self,
        file: File,
        ports: Ports,
        most: usize,
    ) -> Result<Difference, Error> {
        self.kernel.forget_refusals();
        let seen = self.kernel.look(self.tables.program())?;
        let wanted = self.wanted(&file, seen, ports)?;
        let difference = self.difference(&wanted, most);
        let sizes = sizes_of(&file, &wanted.forwarding);
        if !sizes.fit_into(self.tables.program().sizes()) {
            self.grow(sizes)?;
        }
        self.install(wanted, &file)?;
        self.file = Some(file);
        Ok(difference)
    }

    fn difference(&self, wanted: &Wanted, most: usize) -> Difference {
        let name = |tenant| name(&wanted.tenants, &wanted.table_tenants, tenant);
        Difference::between(self.tables.now(), &wanted.forwarding, &name, most)
    }

    /// How a tenant is called.
    pub(crate) fn tenant(&self, number: TenantId) -> String {
        name(&self.tenants, &self.table_tenants, number)
    }

    /// What `file` and the kernel's routes ask for.
    fn wanted(&mut self, file: &File, seen: Seen, ports: Ports) -> Result<Wanted, Error> {
        // Numbers that a refused file took are free again.
        let (mut tenants, mut table_tenants) = (self.tenants.clone(), self.table_tenants.clone());
        let mut links = Links::new(seen.kernel.links.clone(), seen.kernel.finds_tables);
        let mut file = Cow::Borrowed(file);
        if ports == Ports::Present {
            let known = self.tables.now().ports.iter();
            links = links.also_called(known.map(|(index, port)| (port.name.as_str(), *index)));
            let named = file.ports.iter().flat_map(|(name, port)| [Some(name), port.exit.as_ref()]);
            let missing = named.flatten().filter(|name| !links.has(name));
            let missing: Vec<_> = missing.cloned().collect();
            if !missing.is_empty() {
                tracing::warn!("there is no interface {} at present", missing.join(", "));
                file = Cow::Owned(file.without_ports(&missing));
            }
        }
        let file: &File = &file;
        let mut forwarding = resolve(file, &links, &mut tenants).map_err(Error::Resolve)?;
        leave_own(&mut forwarding, &seen.kernel);
        let mut imported = Imported::default();
        if file.import {
            imported = import(&mut forwarding, &seen.kernel, &mut table_tenants);
        }
        let slow_path = self.kernel.slow_path(&mut forwarding, &seen);
        Ok(Wanted { forwarding, imported, tenants, table_tenants, slow_path, seen })
    }

    /// Changes the tables and the kernel's slow path, attaches to new ports, leaves ports that are
    /// not wanted. On an error all is as it was.
    fn install(&mut self, mut wanted: Wanted, file: &File) -> Result<(), Error> {
        let done = self.kernel.extend(&mut wanted.slow_path, &mut wanted.forwarding, &wanted.seen);
        let done = done.and_then(|()| self.install_tables(wanted.forwarding, file));
        if let Err(error) = done {
            self.kernel.restore(&wanted.seen);
            return Err(error);
        }
        (self.imported, self.tenants) = (wanted.imported, wanted.tenants);
        self.table_tenants = wanted.table_tenants;
        self.tables.program().set_exact(wanted.seen.exact);
        self.seen = Some(wanted.seen.kernel);
        // Only now no packet is handed to it any more.
        if let Err(error) = self.kernel.shrink(wanted.slow_path) {
            // What is too much there goes with the next look.
            tracing::warn!("routes are left over: {}", api::in_one_line(&error));
        }
        Ok(())
    }

    fn install_tables(&mut self, forwarding: Forwarding, file: &File) -> Result<(), Error> {
        let before = self.tables.change_to(forwarding)?;
        let ports = self.tables.now().ports.clone();
        let is_new = |port: &&u32| !self.attached.contains_key(port);
        // An interface that was made anew has its predecessor's name, and pin: that is not to go
        // with the predecessor.
        let new = ports.keys().filter(is_new);
        let names: HashSet<&str> = new.map(|index| ports[index].name.as_str()).collect();
        self.attached.retain(|index, _| {
            let of_same_name = before.ports.get(index).is_some_and(|p| names.contains(&*p.name));
            ports.contains_key(index) || !of_same_name
        });
        if let Err(error) = self.attach_ports(&ports, file) {
            // The first error is the one to report; what was there a moment ago fits.
            let _ = self.tables.change_to(before);
            return Err(error);
        }
        for (index, attached) in &mut self.attached {
            // A file may call a port by its new name.
            if let Some(port) = ports.get(index) {
                attached.move_pin(&self.pins.join(pin_name(&port.name)))?;
            }
        }
        let is_gone = |port: &&u32| !ports.contains_key(port);
        for index in self.attached.keys().filter(is_gone).copied().collect::<Vec<_>>() {
            self.detach_port(index)?;
        }
        self.sweep(&ports)?;
        // Only now: it takes the place of the earlier program's.
        self.keep_watch()?;
        if self.trace.is_none() {
            // Of a daemon that was killed while it traced; no port leads there any more.
            let _ = std::fs::remove_file(self.pins.join(TRACE));
        }
        self.modes = self.kernel.xdp_modes()?;
        Ok(())
    }

    /// Puts a program with larger tables in place of the one that is at work. Counters begin anew.
    fn grow(&mut self, sizes: Sizes) -> Result<(), Error> {
        // It stands in front of the program that goes.
        self.end_trace();
        let mut tables = Tables::new(Srv6::load(sizes.or(self.tables.program().sizes()))?);
        tables.change_to(self.tables.now().clone())?;
        if let Err(error) = self.put_on_all(tables.program().program()) {
            // It was there a moment ago; the first error is the one to report.
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
    fn put_on_all(&self, program: BorrowedFd<'_>) -> Result<(), Error> {
        let mut first = Ok(());
        for attached in self.attached.values() {
            first = first.and(attached.replace(program));
        }
        Ok(first?)
    }

    /// Lets the program's watch outlive this process.
    fn keep_watch(&mut self) -> Result<(), Error> {
        if !self.watched {
            self.tables.program().keep_watch(&self.pins.join(WATCH))?;
            self.watched = true;
        }
        Ok(())
    }

    /// Traces the first `most` packets that match.
    pub(crate) fn trace(&mut self, filter: Filter, most: u32, sink: Sink) -> Result<(), Error> {
        if self.trace.is_some() {
            return Err(Error::Traced);
        }
        let trace = Trace::new(&self.tables, filter, most, sink)?;
        trace.tracer().pin(&self.pins.join(TRACE))?;
        let done = self.put_on_all(trace.tracer().program());
        self.trace = Some(trace);
        if done.is_err() {
            self.end_trace();
        }
        done
    }

    /// Hands on what was traced, and ends the trace when nobody waits for more.
    fn go_on_tracing(&mut self) {
        let Some(mut trace) = self.trace.take() else { return };
        let name = |tenant| name(&self.tenants, &self.table_tenants, tenant);
        let more = trace.go_on(&self.tables, &name);
        self.trace = Some(trace);
        match more {
            Ok(true) => {}
            Ok(false) => self.end_trace(),
            Err(error) => {
                tracing::warn!("the trace ends: {}", api::in_one_line(&error));
                self.end_trace();
            }
        }
    }

    /// Puts the program back in the tracer's place.
    pub(crate) fn end_trace(&mut self) {
        // The tracer goes last: without it there would be no way to the program.
        let Some(_tracer) = self.trace.take() else { return };
        match self.put_on_all(self.tables.program().program()) {
            Ok(()) => drop(std::fs::remove_file(self.pins.join(TRACE))),
            // Its pin stays, and packets find their way through it.
            Err(error) => {
                tracing::warn!("the tracer stays in front: {}", api::in_one_line(&error));
            }
        }
    }

    /// What was counted by tenant.
    pub(crate) fn tenant_counts(&self) -> Vec<v1::DataplaneTenant> {
        let mut owners = self.table_tenants.owners();
        for (name, tenant) in self.file.iter().flat_map(|file| &file.tenants) {
            let table = match &tenant.table {
                Some(Table::Number(number)) => Some(*number),
                Some(Table::Vrf(vrf)) => self.seen.as_ref().and_then(|seen| {
                    let link = seen.links.iter().find(|link| *link.name == **vrf);
                    link.and_then(|link| link.vrf_table)
                }),
                None => None,
            };
            if let (Some(table), Some(number)) = (table, self.tenants.number(name)) {
                owners.insert(table, number);
            }
        }
        tenants::counts(&self.tables, &|tenant| self.tenant(tenant), &owners)
    }

    /// The index of a port.
    pub(crate) fn port(&self, name: &str) -> Option<u32> {
        let ports = &self.tables.now().ports;
        ports.iter().find(|(_, port)| port.name == name).map(|(index, _)| *index)
    }

    /// Takes what earlier engines left at work off ports that are not wanted.
    fn sweep(&self, wanted: &BTreeMap<u32, Port>) -> Result<(), Error> {
        let failed = |source| Error::State { path: self.pins.clone(), source };
        for pin in self.port_pins()? {
            let is_wanted = |name: &str| wanted.values().any(|port| pin_name(&port.name) == name);
            if !is_wanted(&pin) {
                std::fs::remove_file(self.pins.join(&pin)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The pins of ports, this engine's and earlier ones'.
    fn port_pins(&self) -> Result<Vec<String>, Error> {
        let failed = |source| Error::State { path: self.pins.clone(), source };
        let mut pins = Vec::new();
        for pin in std::fs::read_dir(&self.pins).map_err(failed)? {
            let name = pin.map_err(failed)?.file_name().to_string_lossy().into_owned();
            // What has a dot is the file system's own.
            if !name.starts_with(WATCH) && !name.contains('.') {
                pins.push(name);
            }
        }
        Ok(pins)
    }

    /// Hands everything back to the kernel.
    pub(crate) fn detach(&mut self) -> Result<(), Error> {
        self.end_trace();
        let ports: Vec<u32> = self.attached.keys().copied().collect();
        for index in ports {
            self.detach_port(index)?;
        }
        self.sweep(&BTreeMap::new())?;
        self.tables.change_to(Forwarding::default())?;
        (self.file, self.seen, self.imported) = (None, None, Imported::default());
        self.modes.clear();
        self.kernel.leave()
    }

    /// Ends. Ports that are attached stay so; without one, nothing is left behind.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.end_trace();
        if self.port_pins()?.is_empty() {
            remove_pins(&self.pins)?;
        }
        Ok(())
    }

    /// The tables.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was taken over from the kernel, and what was not.
    pub(crate) fn imported(&self) -> &Imported {
        &self.imported
    }

    /// Waits for events for a tick, and follows them.
    pub(crate) fn follow(&mut self) -> Result<(), Error> {
        self.tables.program().beat();
        self.go_on_tracing();
        for (interface, address) in self.tables.program().missing_neighbours() {
            if let Err(error) = self.kernel.probe(interface, address) {
                tracing::debug!("{}", api::in_one_line(&error));
            }
        }
        let mut event = self.monitor.wait(TICK)?;
        let mut generation = false;
        while let Some(one) = event {
            let change = self.heed(&one);
            generation |= change.routes;
            if change.exact {
                // Until the next look at the tables says otherwise.
                self.tables.program().set_exact(true);
            }
            if change.tables && self.changed_since.is_none() {
                self.changed_since = Some(Instant::now());
            }
            event = self.monitor.next()?;
        }
        if generation {
            self.tables.program().begin_generation();
        }
        if self.looked_for_source.elapsed() >= SOURCE_EVERY {
            self.looked_for_source = Instant::now();
            if let Some(seen) = &self.seen
                && self.kernel.has_another_source(seen)?
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
        let seen = self.kernel.look(self.tables.program())?;
        if self.seen.as_ref() == Some(&seen.kernel) && self.kernel.keeps(&seen) {
            self.tables.program().set_exact(seen.exact);
            return Ok(());
        }
        let wanted = self.wanted(file, seen, Ports::Present)?;
        self.install(wanted, file)
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
        let now = self.tables.now();
        now.ports.contains_key(&interface) || now.uppers.contains_key(&interface)
    }

    /// Remembers a neighbour. True if an adjacency with it may be wrong now.
    fn know(&mut self, neighbour: &Neighbour) -> bool {
        let key = (neighbour.interface, neighbour.address);
        // The kernel asks again only for packets that it sends itself.
        if neighbour.state == NeighbourState::Stale
            && self.is_ours(neighbour.interface)
            && let Err(error) = self.kernel.probe(key.0, key.1)
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

/// A port's pin: a BPF file system takes no dot in a name, and an interface's name has no colon.
fn pin_name(port: &str) -> String {
    port.replace('.', ":")
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
        tenants: limits.tenants + TABLE_TENANTS,
        attachments: (forwarding.attachments.len() as u32).next_power_of_two().max(4096),
    }
}
