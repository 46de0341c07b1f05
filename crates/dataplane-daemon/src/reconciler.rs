//! The reconciler of a running data plane: keeps the forwarding state in line with the file and the
//! kernel.
//!
//! The reconciler runs on its own thread and receives every change event of the kernel. Each event
//! starts a new generation of adjacencies immediately. Events that concern SRv6 routes, links or
//! addresses also trigger a full read of the kernel's tables, once the changes have settled.

mod closing;
mod follow;
mod guarded;
mod install;
mod interfaces;
#[cfg(test)]
mod tests;
mod trace;
mod wanted;
mod warnings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use api::v1;
use dataplane::Dataplane;
use dataplane::forwarding::{
    Difference, Imported, Kernel, Refused, SlowPath, TableTenants, TenantId, Tenants,
};
use ipnet::Ipv6Net;
use model::dataplane::{Dataplane as Which, File, Name, Table};
use netlink::Mac;

use crate::guard::Guarded;
use crate::health::{Checks, Record};
use crate::host::{Host, Recorded, Seen};
use crate::trace::Trace;
use crate::{Error, tenants};

/// Maximum wait for events. It bounds the latency of an order, and the reconciler refreshes the
/// program's watchdog (LIMIT_TICK_NS) several times per period.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A data plane and the state that it is computed from.
pub(crate) struct Reconciler {
    plane: Box<dyn Dataplane>,
    which: Which,
    host: Box<dyn Host>,
    /// Kernel state before the last change.
    seen: Option<Kernel>,
    /// Entries that the kernel has refused since the last file was applied.
    refused: Refused,
    file: Option<File>,
    /// Interfaces that the file before names.
    known: BTreeSet<Name>,
    tenants: Tenants,
    table_tenants: TableTenants,
    imported: Imported,
    /// Time since which the data plane may be out of date with the file or the kernel.
    changed_since: Option<Instant>,
    /// Earliest time of the next read of the kernel's tables.
    rested_at: Instant,
    /// Failed attempts to follow the kernel since the last successful one, and the time of the first.
    failures: u32,
    failing_since: Instant,
    neighbors: HashMap<(u32, IpAddr), Option<Mac>>,
    /// True if a route had a locked MTU when the tables were read.
    has_locked_mtus: bool,
    trace: Option<Trace>,
    checks: Checks,
    /// Warnings about the file that was planned or applied last.
    warnings: Vec<String>,
    /// Ports that cannot be attached and are down.
    closed: BTreeSet<Name>,
    /// Ports that do not exist, or cannot be attached.
    missing: BTreeSet<Name>,
    /// Renamed interfaces that are down, and their former names, which other interfaces have.
    former: BTreeMap<u32, Name>,
    /// The interfaces of the last change, and the former ones.
    recorded: Recorded,
    /// Messages logged by the previous change and by the present one, which are not repeated.
    logged: [BTreeSet<String>; 2],
    /// Last time the reconciler polled the kernel state that has no events.
    looked_for_silent: Instant,
}

/// The ports of a file that must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// All that the current file does not name: a tenant can delete its interface at any time.
    New,
    /// Only existing ports. A port that was removed may come back, and a renamed port is still the
    /// same port.
    Present,
}

fn name(tenants: &Tenants, tables: &TableTenants, number: TenantId) -> String {
    match (tenants.name(number), tables.table(number)) {
        (Some(name), _) => name.into(),
        (None, Some(table)) => format!("table {table}"),
        (None, None) => format!("#{number}"),
    }
}

impl Reconciler {
    /// Creates a reconciler that forwards nothing yet.
    pub(crate) fn new(mut host: Box<dyn Host>, which: Which) -> Result<Self, Error> {
        Ok(Self {
            plane: host.load(which)?,
            which,
            recorded: host.recorded(),
            host,
            seen: None,
            refused: Refused::default(),
            file: None,
            known: BTreeSet::new(),
            tenants: Tenants::default(),
            table_tenants: TableTenants::default(),
            imported: Imported::default(),
            changed_since: None,
            rested_at: Instant::now(),
            failures: 0,
            failing_since: Instant::now(),
            neighbors: HashMap::new(),
            has_locked_mtus: false,
            trace: None,
            checks: Checks::default(),
            warnings: Vec::new(),
            closed: BTreeSet::new(),
            missing: BTreeSet::new(),
            former: BTreeMap::new(),
            logged: Default::default(),
            looked_for_silent: Instant::now(),
        })
    }

    /// Returns the changes that `file` would make; lists at most `most` of them.
    pub(crate) fn plan(&mut self, file: &File, most: usize) -> Result<Difference, Error> {
        let next = self.other(file)?;
        let seen = self.look(next.as_deref())?;
        let wanted = self.wanted(file, seen, Ports::New)?;
        self.warn(&wanted, file.dataplane);
        Ok(self.difference(&wanted, file, most))
    }

    /// Makes the data plane match `file`. On an error nothing has changed, except that ports without the
    /// program may have been set down.
    pub(crate) fn apply(&mut self, file: File, most: usize) -> Result<Difference, Error> {
        self.apply_with(file, Ports::New, most)
    }

    /// Makes the data plane match a file that was applied before. Ports that do not exist or cannot be
    /// attached are left out.
    pub(crate) fn resume(&mut self, file: File) -> Result<(), Error> {
        self.apply_with(file, Ports::Present, 0).map(drop)
    }

    fn apply_with(&mut self, file: File, ports: Ports, most: usize) -> Result<Difference, Error> {
        // Retry the refused entries and the closed ports: a new file may succeed with them.
        self.refused = Refused::default();
        let closed = std::mem::take(&mut self.closed);
        let applied = self.apply_to_kernel(&file, ports, most);
        if applied.is_err() {
            self.closed.extend(closed);
            // If a port could not be restored, it is without the program: look at once.
            self.changed_since.get_or_insert_with(Instant::now);
        }
        let difference = applied?;
        self.which = file.dataplane;
        self.know(&file);
        self.file = Some(file);
        self.warnings.extend(self.stripping());
        self.warnings.extend(self.evaded());
        self.warnings.extend(self.renamed());
        Ok(difference)
    }

    /// The fallible part of [`Reconciler::apply_with`].
    fn apply_to_kernel(
        &mut self,
        file: &File,
        ports: Ports,
        most: usize,
    ) -> Result<Difference, Error> {
        loop {
            let next = self.other(file)?;
            let seen = self.look(next.as_deref())?;
            let wanted = self.wanted(file, seen, ports)?;
            let difference = self.difference(&wanted, file, most);
            self.warn(&wanted, file.dataplane);
            match self.install(wanted, next, file) {
                Ok(()) => return Ok(difference),
                Err(error) => self.close_failed(error, ports)?,
            }
        }
    }

    /// Lets a later file name interfaces of this one that do not exist.
    pub(crate) fn know(&mut self, file: &File) {
        self.known = file.interfaces().cloned().collect();
    }

    /// Returns true if an interface of a file need not exist.
    fn may_lack(&self, name: &Name, ports: Ports) -> bool {
        ports == Ports::Present || self.known.contains(name)
    }

    /// Loads the data plane that is to replace this one, if `file` asks for another kind.
    fn other(&mut self, file: &File) -> Result<Option<Box<dyn Dataplane>>, Error> {
        let is_other = file.dataplane != self.which;
        is_other.then(|| self.host.load(file.dataplane)).transpose()
    }

    /// Reads the kernel state for the current data plane, or for `next` if there is one.
    fn look(&mut self, next: Option<&dyn Dataplane>) -> Result<Seen, Error> {
        self.host.look(next.unwrap_or(&*self.plane).has_table_lookup())
    }

    /// Returns the name of a tenant.
    pub(crate) fn tenant(&self, number: TenantId) -> String {
        name(&self.tenants, &self.table_tenants, number)
    }

    /// Returns the counts by tenant; empty if the kernel forwards, which does not count by tenant.
    pub(crate) fn tenant_counts(&self) -> Vec<v1::DataplaneTenant> {
        if self.which == Which::Kernel {
            return Vec::new();
        }
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
        tenants::counts(&*self.plane, &|tenant| self.tenant(tenant), &owners)
    }

    /// Returns the ifindex of a port, by its name in the file or the present one of the interface.
    pub(crate) fn port(&self, name: &str) -> Option<u32> {
        let ports = &self.plane.current().ports;
        let mut named = ports.iter().filter(|(_, port)| port.name == name);
        let renamed = || {
            let mut links = self.seen.iter().flat_map(|seen| &seen.links);
            links.find(|link| link.name == name && ports.contains_key(&link.index))
        };
        named.next().map(|(index, _)| *index).or_else(|| renamed().map(|link| link.index))
    }

    /// Returns the present name of a port's interface, if it is not `name`.
    pub(crate) fn renamed_to(&self, index: u32, name: &str) -> Option<String> {
        let mut links = self.seen.iter().flat_map(|seen| &seen.links);
        let link = links.find(|link| link.index == index)?;
        (link.name != name).then(|| link.name.clone())
    }

    /// Hands everything back to the kernel.
    pub(crate) fn detach(&mut self) -> Result<(), Error> {
        self.end_trace();
        // The rules of ports would drop what the programs do not mark any more.
        let before = self.file.as_ref().map(|file| self.guarded_now(file)).unwrap_or_default();
        self.guard(&Guarded { functions: before.functions.clone(), ..Guarded::default() });
        if let Err(error) = self.plane.detach() {
            self.guard(&before);
            return Err(error.into());
        }
        (self.file, self.seen, self.imported) = (None, None, Imported::default());
        (self.missing, self.former, self.closed) = Default::default();
        self.record(Recorded::default());
        self.checks = Checks::default();
        self.guard(&Guarded::default());
        self.host.shrink(SlowPath::default())
    }

    /// Ends the reconciler. Attached ports stay attached; if there are none, nothing is left over.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.end_trace();
        if self.plane.current().ports.is_empty() {
            self.guard(&Guarded::default());
        }
        Ok(self.plane.shut_down()?)
    }

    /// Returns the kind of the data plane that forwards.
    pub(crate) fn which(&self) -> Which {
        self.which
    }

    /// Returns the data plane that forwards.
    pub(crate) fn plane(&self) -> &dyn Dataplane {
        &*self.plane
    }

    /// Returns the check results of a service function; `None` if it has no check.
    pub(crate) fn health(&self, sid: Ipv6Net) -> Option<Record> {
        self.checks.record(sid)
    }

    /// Returns the warnings about the file that was planned or applied last.
    pub(crate) fn warned(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the routes that were imported from the kernel, and those that were not.
    pub(crate) fn imported(&self) -> &Imported {
        &self.imported
    }
}
