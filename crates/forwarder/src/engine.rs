//! One data plane at work: what its file and the kernel say, kept in what forwards.
//!
//! The engine runs on a thread of its own. It hears of every change in the kernel. Each begins a new
//! generation of adjacencies at once; those that concern SRv6 routes, links or addresses are
//! followed by a look at the kernel's tables as a whole, once the changes have settled.

mod follow;
#[cfg(test)]
mod tests;
mod trace;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use api::v1;
use dataplane::Dataplane;
use dataplane::xdp::{
    Difference, Forwarding, Imported, Kernel, Links, Names, Refused, SlowPath, TableTenants,
    TenantId, Tenants, check_functions, check_tables, import, leave_own, resolve, warnings,
};
use ipnet::Ipv6Net;
use model::dataplane::{Dataplane as Which, File, Table};
use netlink::Mac;

use crate::health::{Checks, Record};
use crate::host::{Host, Seen};
use crate::trace::Trace;
use crate::{Error, tenants};

/// How long the engine waits for events at a time: orders are answered as fast, and the program's
/// watch (LIMIT_TICK_NS) hears of the engine several times.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A data plane.
pub(crate) struct Engine {
    plane: Box<dyn Dataplane>,
    which: Which,
    host: Box<dyn Host>,
    /// What the kernel said before the last change.
    seen: Option<Kernel>,
    /// What the kernel would not take since the last file was applied.
    refused: Refused,
    file: Option<File>,
    tenants: Tenants,
    table_tenants: TableTenants,
    imported: Imported,
    /// Since when the data plane may differ from what the file and the kernel say.
    changed_since: Option<Instant>,
    /// When the next look at the kernel's tables may begin.
    rested_at: Instant,
    neighbours: HashMap<(u32, IpAddr), Option<Mac>>,
    trace: Option<Trace>,
    checks: Checks,
    /// What the last file that was planned or applied leaves open.
    warnings: Vec<String>,
    /// When the kernel was last asked for that of which it sends no events.
    looked_for_silent: Instant,
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
    /// What the kernel is to have.
    routes: SlowPath,
    /// Service functions that are down.
    down: BTreeSet<Ipv6Net>,
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
    /// An engine that forwards nothing yet.
    pub(crate) fn new(mut host: Box<dyn Host>, which: Which) -> Result<Self, Error> {
        Ok(Self {
            plane: host.load(which)?,
            which,
            host,
            seen: None,
            refused: Refused::default(),
            file: None,
            tenants: Tenants::default(),
            table_tenants: TableTenants::default(),
            imported: Imported::default(),
            changed_since: None,
            rested_at: Instant::now(),
            neighbours: HashMap::new(),
            trace: None,
            checks: Checks::default(),
            warnings: Vec::new(),
            looked_for_silent: Instant::now(),
        })
    }

    /// What `file` would change, the first `most` of it listed.
    pub(crate) fn plan(&mut self, file: &File, most: usize) -> Result<Difference, Error> {
        let next = self.other(file)?;
        let seen = self.look(next.as_deref())?;
        let wanted = self.wanted(file, seen, Ports::All)?;
        self.warn(&wanted);
        Ok(self.difference(&wanted, file, most))
    }

    /// Makes the data plane what `file` says. On an error nothing has changed.
    pub(crate) fn apply(
        &mut self,
        file: File,
        ports: Ports,
        most: usize,
    ) -> Result<Difference, Error> {
        // A new file may have what was refused before.
        self.refused = Refused::default();
        let next = self.other(&file)?;
        let seen = self.look(next.as_deref())?;
        let wanted = self.wanted(&file, seen, ports)?;
        let difference = self.difference(&wanted, &file, most);
        self.warn(&wanted);
        self.install(wanted, next, &file)?;
        self.which = file.dataplane;
        self.file = Some(file);
        Ok(difference)
    }

    /// Remembers what is open in that state.
    fn warn(&mut self, wanted: &Wanted) {
        self.warnings = warnings(&wanted.forwarding, &wanted.seen.kernel);
        if wanted.forwarding.sids.values().any(|endpoint| endpoint.netfilter) {
            self.warnings.extend(self.host.open_firewall());
        }
    }

    /// What is to forward in this one's place, if `file` asks for another.
    fn other(&mut self, file: &File) -> Result<Option<Box<dyn Dataplane>>, Error> {
        let is_other = file.dataplane != self.which;
        is_other.then(|| self.host.load(file.dataplane)).transpose()
    }

    /// Looks at the kernel for the one that forwards, or for the one that is to.
    fn look(&mut self, next: Option<&dyn Dataplane>) -> Result<Seen, Error> {
        self.host.look(next.unwrap_or(&*self.plane).finds_tables())
    }

    fn difference(&self, wanted: &Wanted, file: &File, most: usize) -> Difference {
        let name = |tenant| name(&wanted.tenants, &wanted.table_tenants, tenant);
        let found = Difference::between(self.plane.now(), &wanted.forwarding, &name, most);
        if file.dataplane == self.which {
            return found;
        }
        found.handed_over(self.which.name(), file.dataplane.name())
    }

    /// What `file` and the kernel's routes ask for.
    fn wanted(&mut self, file: &File, seen: Seen, ports: Ports) -> Result<Wanted, Error> {
        // Numbers that a refused file took are free again.
        let (mut tenants, mut table_tenants) = (self.tenants.clone(), self.table_tenants.clone());
        tenants.spare(seen.present.tenants());
        let mut links = Links::new(seen.kernel.links.clone(), seen.kernel.finds_tables)
            .passing(seen.passing.clone());
        let mut file = Cow::Borrowed(file);
        if ports == Ports::Present {
            let known = self.plane.now().ports.iter();
            links = links.also_called(known.map(|(index, port)| (port.name.as_str(), *index)));
            links = links.lacking_functions();
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
        if ports == Ports::All {
            check_functions(&forwarding, &seen.kernel)?;
            check_tables(file, &seen.kernel)?;
        }
        let mut imported = Imported::default();
        // The kernel's own routes are the kernel's own as long as nothing stands in front of them.
        let alone = file.dataplane == Which::Kernel;
        if file.import && !alone {
            imported = import(&mut forwarding, &seen.kernel, &mut table_tenants);
        }
        // Without a route to a segment any interface does: the kernel looks the packet up again.
        let mut interface = |segment| self.host.interface_to(segment);
        let mut routes = if alone {
            let name = |tenant| name(&tenants, &table_tenants, tenant);
            let names = Names { of: &forwarding, tenant: &name };
            SlowPath::alone(names, &seen.kernel, &mut interface)?
        } else {
            SlowPath::of(&forwarding, &seen.kernel, &mut interface)
        };
        routes.leave_out(&self.refused);
        routes.mark(&mut forwarding);
        // One that nobody has heard of waits for its first check.
        let down = self.checks.down(file, |sid| seen.present.announces(sid));
        routes.withdraw(&down);
        Ok(Wanted { forwarding, imported, tenants, table_tenants, routes, down, seen })
    }

    /// Changes what forwards, and the routes that the kernel has beside it. On an error all is as it
    /// was.
    fn install(
        &mut self,
        mut wanted: Wanted,
        next: Option<Box<dyn Dataplane>>,
        file: &File,
    ) -> Result<(), Error> {
        if let Err(error) = self.install_first(&mut wanted, next, file) {
            self.host.restore(&wanted.seen);
            return Err(error);
        }
        (self.imported, self.tenants) = (wanted.imported, wanted.tenants);
        self.table_tenants = wanted.table_tenants;
        self.plane.set_exact(wanted.seen.exact);
        self.seen = Some(wanted.seen.kernel);
        // Only now no packet is handed to it any more.
        if let Err(error) = self.host.shrink(wanted.routes) {
            // What is too much there goes with the next look.
            tracing::warn!("routes are left over: {}", api::in_one_line(&error));
        }
        self.tenants.keep_only(file);
        self.checks.follow(file, &wanted.down);
        Ok(())
    }

    /// What may fail of [`Engine::install`].
    fn install_first(
        &mut self,
        wanted: &mut Wanted,
        next: Option<Box<dyn Dataplane>>,
        file: &File,
    ) -> Result<(), Error> {
        let Wanted { forwarding, tenants, table_tenants, routes, seen, .. } = wanted;
        let refused = self.host.extend(routes, forwarding.source, seen)?;
        if file.dataplane == Which::Kernel {
            let name = |tenant| name(tenants, table_tenants, tenant);
            refused.check(Names { of: forwarding, tenant: &name })?;
        }
        // The kernel does not have it, then.
        refused.unmark(forwarding);
        routes.leave_out(&refused);
        self.refused.add(&refused);
        let forwarding = std::mem::take(forwarding);
        match next {
            Some(next) => self.hand_over(next, forwarding, file),
            None => Ok(self.plane.change_to(forwarding, file)?),
        }
    }

    /// Lets another one forward, and only then this one leave. On an error this one goes on.
    fn hand_over(
        &mut self,
        mut next: Box<dyn Dataplane>,
        forwarding: Forwarding,
        file: &File,
    ) -> Result<(), Error> {
        self.end_trace();
        next.change_to(forwarding, file)?;
        let now = self.plane.now().clone();
        if let Err(error) = self.plane.leave() {
            // The first error is the one to report; what was there a moment ago fits.
            let _ = next.leave();
            let _ = self.plane.change_to(now, self.file.as_ref().unwrap_or(file));
            return Err(error.into());
        }
        self.plane = next;
        Ok(())
    }

    /// How a tenant is called.
    pub(crate) fn tenant(&self, number: TenantId) -> String {
        name(&self.tenants, &self.table_tenants, number)
    }

    /// What was counted by tenant; nothing where nobody counts.
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

    /// The index of a port.
    pub(crate) fn port(&self, name: &str) -> Option<u32> {
        let ports = &self.plane.now().ports;
        ports.iter().find(|(_, port)| port.name == name).map(|(index, _)| *index)
    }

    /// Hands everything back to the kernel.
    pub(crate) fn detach(&mut self) -> Result<(), Error> {
        self.end_trace();
        self.plane.leave()?;
        (self.file, self.seen, self.imported) = (None, None, Imported::default());
        self.checks = Checks::default();
        self.host.shrink(SlowPath::default())
    }

    /// Ends. Ports that are attached stay so; without one, nothing is left behind.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.end_trace();
        Ok(self.plane.end()?)
    }

    /// Which one forwards.
    pub(crate) fn which(&self) -> Which {
        self.which
    }

    /// What forwards.
    pub(crate) fn plane(&self) -> &dyn Dataplane {
        &*self.plane
    }

    /// What checks have said of a service function; none without a check.
    pub(crate) fn health(&self, sid: Ipv6Net) -> Option<Record> {
        self.checks.record(sid)
    }

    /// What the file that was planned or applied last leaves open.
    pub(crate) fn warned(&self) -> &[String] {
        &self.warnings
    }

    /// What is open now.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.seen.as_ref().map_or_else(Vec::new, |seen| warnings(self.plane.now(), seen))
    }

    /// What was taken over from the kernel, and what was not.
    pub(crate) fn imported(&self) -> &Imported {
        &self.imported
    }
}
