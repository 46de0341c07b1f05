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
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use api::v1;
use dataplane::Dataplane;
use dataplane::xdp::{
    Difference, Forwarding, Imported, Kernel, Links, Refused, SlowPath, TableTenants, TenantId,
    Tenants, import, leave_own, resolve,
};
use model::dataplane::{File, Table};
use netlink::Mac;

use crate::host::{Host, Seen};
use crate::trace::Trace;
use crate::{Error, tenants};

/// How long the engine waits for events at a time: orders are answered as fast, and the program's
/// watch (LIMIT_TICK_NS) hears of the engine several times.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// A data plane.
pub(crate) struct Engine {
    plane: Box<dyn Dataplane>,
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
    /// When the kernel was last asked for the outer source address.
    looked_for_source: Instant,
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
    pub(crate) fn new(host: Box<dyn Host>, plane: Box<dyn Dataplane>) -> Self {
        Self {
            plane,
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
            looked_for_source: Instant::now(),
        }
    }

    /// What `file` would change, the first `most` of it listed.
    pub(crate) fn plan(&mut self, file: &File, most: usize) -> Result<Difference, Error> {
        let seen = self.host.look(self.plane.finds_tables())?;
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
        // A new file may have what was refused before.
        self.refused = Refused::default();
        let seen = self.host.look(self.plane.finds_tables())?;
        let wanted = self.wanted(&file, seen, ports)?;
        let difference = self.difference(&wanted, most);
        self.install(wanted, &file)?;
        self.file = Some(file);
        Ok(difference)
    }

    fn difference(&self, wanted: &Wanted, most: usize) -> Difference {
        let name = |tenant| name(&wanted.tenants, &wanted.table_tenants, tenant);
        Difference::between(self.plane.now(), &wanted.forwarding, &name, most)
    }

    /// What `file` and the kernel's routes ask for.
    fn wanted(&mut self, file: &File, seen: Seen, ports: Ports) -> Result<Wanted, Error> {
        // Numbers that a refused file took are free again.
        let (mut tenants, mut table_tenants) = (self.tenants.clone(), self.table_tenants.clone());
        let mut links = Links::new(seen.kernel.links.clone(), seen.kernel.finds_tables);
        let mut file = Cow::Borrowed(file);
        if ports == Ports::Present {
            let known = self.plane.now().ports.iter();
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
        // Without a route to a segment any interface does: the kernel looks the packet up again.
        let mut interface = |segment| self.host.interface_to(segment);
        let mut routes = SlowPath::of(&forwarding, &seen.kernel, &mut interface);
        routes.leave_out(&self.refused);
        routes.mark(&mut forwarding);
        Ok(Wanted { forwarding, imported, tenants, table_tenants, routes, seen })
    }

    /// Changes what forwards, and the routes that the kernel has beside it. On an error all is as it
    /// was.
    fn install(&mut self, mut wanted: Wanted, file: &File) -> Result<(), Error> {
        let Wanted { forwarding, routes, seen, .. } = &mut wanted;
        let done = self.host.extend(routes, forwarding.source, seen).and_then(|refused| {
            // The kernel does not have it, then.
            refused.unmark(forwarding);
            routes.leave_out(&refused);
            self.refused.add(&refused);
            Ok(self.plane.change_to(std::mem::take(forwarding), file)?)
        });
        if let Err(error) = done {
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
        Ok(())
    }

    /// How a tenant is called.
    pub(crate) fn tenant(&self, number: TenantId) -> String {
        name(&self.tenants, &self.table_tenants, number)
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
        self.host.shrink(SlowPath::default())
    }

    /// Ends. Ports that are attached stay so; without one, nothing is left behind.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        self.end_trace();
        Ok(self.plane.end()?)
    }

    /// What forwards.
    pub(crate) fn plane(&self) -> &dyn Dataplane {
        &*self.plane
    }

    /// What was taken over from the kernel, and what was not.
    pub(crate) fn imported(&self) -> &Imported {
        &self.imported
    }
}
