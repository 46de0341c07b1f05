//! One data plane at work: what its file and the kernel say, kept in the program's tables.
//!
//! The engine owns the tables and runs on a thread of its own. It hears of every change in the
//! kernel. Each begins a new generation of adjacencies at once; those that concern SRv6 routes,
//! links or addresses are followed by a look at the kernel's tables as a whole, once the changes
//! have settled.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bpf::Srv6;
use bpf::attach::{Attached, Mode, prepare_pins};
use bpf::srv6::Sizes;
use dataplane::xdp::{
    Difference, Forwarding, Imported, Kernel, Links, TableTenants, Tables, TenantId, Tenants,
    import, resolve,
};
use model::dataplane::File;
use netlink::{Encap, Event, GenericHandle, Handle, Link, Mac, Monitor, Neighbour, NeighbourState};

use crate::Error;

/// How long changes of the kernel's tables are waited for to settle.
const SETTLE: Duration = Duration::from_millis(20);
/// A look at large tables takes long: the next comes after this many times as long.
const REST: u32 = 4;
/// The pin of the program's watch, beside those of ports. No interface is called so.
const WATCH: &str = "watch:";
/// How long the engine waits for events at a time: orders are answered as fast, and the program's
/// watch (LIMIT_TICK_NS) hears of the engine several times.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A data plane.
pub(crate) struct Engine {
    tables: Tables,
    attached: BTreeMap<u32, Attached>,
    pins: PathBuf,
    handle: Handle,
    seg6: GenericHandle,
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
}

impl Engine {
    /// Loads the program. Ports that an earlier engine left at work stay with its program until
    /// the first [`Engine::apply`] puts the new one in its place.
    pub(crate) fn new(state: &std::path::Path, sizes: Sizes) -> Result<Self, Error> {
        // Before the first listing: no change between the two is missed.
        let monitor = Monitor::new()?;
        let pins = state.join("bpf");
        prepare_pins(&pins)?;
        let srv6 = Srv6::load(sizes)?;
        srv6.keep_watch(&pins.join(WATCH))?;
        Ok(Self {
            tables: Tables::new(srv6),
            attached: BTreeMap::new(),
            pins,
            handle: Handle::new()?,
            seg6: GenericHandle::new()?,
            monitor,
            file: None,
            tenants: Tenants::default(),
            table_tenants: TableTenants::default(),
            imported: Imported::default(),
            changed_since: None,
            rested_at: Instant::now(),
            neighbours: HashMap::new(),
        })
    }

    /// What `file` would change.
    pub(crate) fn plan(&mut self, file: &File) -> Result<Difference, Error> {
        let (wanted, _) = self.wanted(Some(file))?;
        Ok(self.difference(&wanted))
    }

    /// Makes the data plane what `file` says. On an error nothing has changed.
    pub(crate) fn apply(&mut self, file: File) -> Result<Difference, Error> {
        let (wanted, imported) = self.wanted(Some(&file))?;
        let difference = self.difference(&wanted);
        self.install(&wanted, &file)?;
        self.imported = imported;
        self.file = Some(file);
        Ok(difference)
    }

    fn difference(&self, wanted: &Forwarding) -> Difference {
        Difference::between(self.tables.now(), wanted, &|tenant| self.tenant(tenant))
    }

    /// How a tenant is called.
    pub(crate) fn tenant(&self, number: TenantId) -> String {
        match (self.tenants.name(number), self.table_tenants.table(number)) {
            (Some(name), _) => name.into(),
            (None, Some(table)) => format!("table {table}"),
            (None, None) => format!("#{number}"),
        }
    }

    /// What `file` and the kernel's routes ask for.
    fn wanted(&mut self, file: Option<&File>) -> Result<(Forwarding, Imported), Error> {
        let Some(file) = file else { return Ok(Default::default()) };
        let links = self.handle.links()?;
        let resolved = resolve(file, &Links::new(links.clone()), &mut self.tenants);
        let mut wanted = resolved.map_err(Error::Resolve)?;
        if !file.import {
            return Ok((wanted, Imported::default()));
        }
        let kernel = self.kernel(links)?;
        let last = self.tables.program().sizes().tenants;
        let imported = import(&mut wanted, &kernel, &mut self.table_tenants, last);
        Ok((wanted, imported))
    }

    fn kernel(&mut self, links: Vec<Link>) -> Result<Kernel, Error> {
        let source = self.seg6.tunnel_source()?;
        Ok(Kernel {
            routes: self.handle.routes(None, None)?,
            links,
            addresses: self.handle.addresses()?.iter().map(|a| a.net.addr()).collect(),
            source: Some(source).filter(|source| !source.is_unspecified()),
            has_rules: self.handle.has_rules_of_others()?,
        })
    }

    /// Attaches to new ports, changes the tables, leaves ports that are not wanted: in this order,
    /// so that what fails, fails before a packet meets a change.
    fn install(&mut self, wanted: &Forwarding, file: &File) -> Result<(), Error> {
        let new: Vec<u32> =
            wanted.ports.keys().filter(|port| !self.attached.contains_key(port)).copied().collect();
        self.tables.change_to(wanted)?;
        for (done, index) in new.iter().enumerate() {
            let name = wanted.ports[index].name.clone();
            if let Err(error) = self.attach(*index, &name, mode_of(file, &name)) {
                for index in &new[..done] {
                    self.detach_port(*index);
                }
                // What was there a moment ago fits.
                let _ = self
                    .wanted(self.file.clone().as_ref())
                    .map(|(before, _)| self.tables.change_to(&before));
                return Err(error);
            }
        }
        let gone: Vec<u32> =
            self.attached.keys().filter(|port| !wanted.ports.contains_key(port)).copied().collect();
        for index in gone {
            self.detach_port(index);
        }
        self.sweep(wanted)?;
        self.tables.program().begin_generation();
        Ok(())
    }

    /// Takes what earlier engines left at work off ports that are not wanted.
    fn sweep(&self, wanted: &Forwarding) -> Result<(), Error> {
        let failed = |source| Error::State { path: self.pins.clone(), source };
        for pin in std::fs::read_dir(&self.pins).map_err(failed)? {
            let pin = pin.map_err(failed)?;
            let is_wanted = |name: &str| wanted.ports.values().any(|p| pin_name(&p.name) == name);
            let name = pin.file_name();
            let name = name.to_string_lossy();
            // What has a dot is the file system's own.
            if name != WATCH && !name.contains('.') && !is_wanted(&name) {
                std::fs::remove_file(pin.path()).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// How the program is attached to a port.
    pub(crate) fn mode(&self, index: u32) -> &'static str {
        if self.attached.contains_key(&index) { "attached" } else { "" }
    }

    /// Puts the program on a port: in place of what an earlier engine left there, if it did.
    fn attach(&mut self, index: u32, name: &str, mode: Mode) -> Result<(), Error> {
        let pin = self.pins.join(pin_name(name));
        if pin.exists() {
            match Attached::pinned(&pin) {
                Ok(left) if left.interface() == index => {
                    left.replace(self.tables.program().program())?;
                    self.attached.insert(index, left);
                    return Ok(());
                }
                // Of an interface that is gone.
                _ => std::fs::remove_file(&pin)
                    .map_err(|source| Error::State { path: pin.clone(), source })?,
            }
        }
        let mut made = Attached::new(self.tables.program().program(), index, mode)?;
        made.pin(&pin)?;
        self.attached.insert(index, made);
        Ok(())
    }

    fn detach_port(&mut self, index: u32) {
        if let Some(attached) = self.attached.remove(&index)
            && let Err(error) = attached.detach()
        {
            tracing::warn!("{}", api::in_one_line(&error));
        }
    }

    /// Hands everything back to the kernel.
    pub(crate) fn detach(&mut self) -> Result<(), Error> {
        let ports: Vec<u32> = self.attached.keys().copied().collect();
        for index in ports {
            self.detach_port(index);
        }
        self.tables.change_to(&Forwarding::default())?;
        self.file = None;
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
        let mut event = self.monitor.wait(TICK)?;
        let mut generation = false;
        while let Some(one) = event {
            let change = self.heed(&one);
            generation |= change.routes;
            if change.tables && self.changed_since.is_none() {
                self.changed_since = Some(Instant::now());
            }
            event = self.monitor.next()?;
        }
        if generation {
            self.tables.program().begin_generation();
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
        if let Some(file) = self.file.clone() {
            match self.wanted(Some(&file)) {
                Ok((wanted, imported)) => {
                    self.install(&wanted, &file)?;
                    self.imported = imported;
                }
                // Such as a port that is gone: what is there stays, and the next change of links
                // brings another look.
                Err(error) => tracing::warn!("{}", api::in_one_line(&error)),
            }
        }
        self.rested_at = Instant::now() + started.elapsed() * REST;
        Ok(())
    }

    /// What an event means.
    fn heed(&mut self, event: &Event) -> Change {
        match event {
            Event::Neighbour(neighbour) => Change { routes: self.know(neighbour), tables: false },
            Event::NeighbourGone { interface, address } => {
                let known = self.neighbours.remove(&(*interface, *address)).is_some();
                Change { routes: known, tables: false }
            }
            Event::Route(route) | Event::RouteGone(route) => {
                let srv6 =
                    matches!(route.encap, Some(Encap::Seg6 { .. } | Encap::Seg6Local { .. }));
                // A plain route may cut into a steered prefix.
                Change { routes: true, tables: srv6 || self.imported.taken > 0 }
            }
            Event::Link(_)
            | Event::LinkGone(_)
            | Event::RoutesChanged
            | Event::Rules
            | Event::Overrun => Change { routes: true, tables: true },
        }
    }

    /// Remembers a neighbour. True if an adjacency with it may be wrong now.
    fn know(&mut self, neighbour: &Neighbour) -> bool {
        let key = (neighbour.interface, neighbour.address);
        // The kernel asks again only for packets that it sends itself.
        if neighbour.state == NeighbourState::Stale
            && self.tables.now().ports.contains_key(&neighbour.interface)
            && let Err(error) = self.handle.probe_neighbour(key.0, key.1)
        {
            tracing::debug!("{}", api::in_one_line(&error));
        }
        let mac = neighbour.mac.filter(|_| neighbour.state.is_valid());
        let before = self.neighbours.insert(key, mac);
        before.is_some_and(|before| before.is_some() && before != mac)
    }
}

/// What an event changes.
struct Change {
    /// Where packets go.
    routes: bool,
    /// Possibly the program's tables.
    tables: bool,
}

/// A port's pin: a BPF file system takes no dot in a name, and an interface's name has no colon.
fn pin_name(port: &str) -> String {
    port.replace('.', ":")
}

fn mode_of(file: &File, port: &str) -> Mode {
    match file.ports.get(port).map(|port| port.mode) {
        Some(model::dataplane::Mode::Native) => Mode::Native,
        Some(model::dataplane::Mode::Generic) => Mode::Generic,
        Some(model::dataplane::Mode::Auto) | None => Mode::Auto,
    }
}
