//! Computes the state to install from the file and the kernel.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dataplane::forwarding::{
    Forwarding, Imported, Links, Names, SlowPath, TableTenants, Tenants, Unresolved,
    check_functions, check_tables, import, leave_own, resolve,
};
use ipnet::Ipv6Net;
use model::dataplane::{Dataplane as Which, File, Name};

use super::{Ports, Reconciler, name};
use crate::Error;
use crate::host::Seen;

/// The state to install, with the tenant numbers that it uses.
pub(super) struct Wanted {
    pub(super) forwarding: Forwarding,
    pub(super) imported: Imported,
    pub(super) tenants: Tenants,
    pub(super) table_tenants: TableTenants,
    /// The routes to install in the kernel.
    pub(super) routes: SlowPath,
    /// Service functions that are down.
    pub(super) down: BTreeSet<Ipv6Net>,
    /// Ports that do not exist, or cannot be attached.
    pub(super) missing: BTreeSet<Name>,
    pub(super) ports: Ports,
    /// The interfaces that the last file names, and their names there.
    pub(super) named: BTreeMap<u32, Name>,
    pub(super) seen: Seen,
}

/// A file resolved without the ports that are missing.
struct Resolved<'f> {
    forwarding: Forwarding,
    /// The file without these ports.
    file: Cow<'f, File>,
    missing: BTreeSet<Name>,
}

impl Reconciler {
    /// Computes the state that `file` and the kernel's routes ask for.
    pub(super) fn wanted(
        &mut self,
        file: &File,
        seen: Seen,
        ports: Ports,
    ) -> Result<Wanted, Error> {
        // Work on copies: if the file is refused, the tenant numbers that it took stay free.
        let (mut tenants, mut table_tenants) = (self.tenants.clone(), self.table_tenants.clone());
        tenants.spare(seen.present.tenants());
        let named = self.named(&seen.kernel.links)?;
        let links = self.links(file, &seen, &named, ports);
        let missing = self.missing(file, &links, ports);
        let Resolved { mut forwarding, file: present, missing } =
            resolve_present(file, &links, missing, ports, &mut tenants)?;
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|name| &**name).collect();
            self.warn_once(format!(
                "left out until they return: {} (they do not exist, or cannot be ports)",
                names.join(", ")
            ));
        }
        let outside: BTreeSet<Name> =
            missing.iter().filter(|name| file.is_outside(name)).cloned().collect();
        let file: &File = &present;
        leave_own(&mut forwarding, &seen.kernel);
        if ports == Ports::New {
            check_functions(&forwarding, &seen.kernel)?;
            check_tables(file, &seen.kernel)?;
        }
        let mut imported = Imported::default();
        // Import only if a program runs in front of the kernel: otherwise the kernel forwards by
        // its own routes anyway.
        let alone = file.dataplane == Which::Kernel;
        if file.import && !alone {
            imported = import(&mut forwarding, &seen.kernel, &mut table_tenants, &file.limits);
        }
        // If a segment has no route, any interface will do: the kernel repeats the lookup.
        let mut interface = |segment| self.host.interface_to(segment);
        let mut routes = if alone {
            let name = |tenant| name(&tenants, &table_tenants, tenant);
            let names = Names { of: &forwarding, tenant: &name };
            SlowPath::alone(names, &seen.kernel, &mut interface)?
        } else {
            SlowPath::new(&forwarding, &seen.kernel, &mut interface)
        };
        if ports == Ports::Present || !missing.is_empty() {
            routes.keep_absent(&seen.present, &forwarding, &seen.kernel.links, &missing);
        }
        routes.close_absent(&outside, &forwarding, &seen.kernel);
        routes.leave_out(&self.refused);
        routes.mark(&mut forwarding);
        // A function that was never announced stays withdrawn until its first check.
        let down = self.checks.down(file, |sid| seen.present.announces(sid));
        routes.withdraw(&down);
        Ok(Wanted {
            forwarding,
            imported,
            tenants,
            table_tenants,
            routes,
            down,
            missing,
            ports,
            named,
            seen,
        })
    }

    /// Returns the interfaces of the machine, also by the names that `named` ones had before.
    fn links(&self, file: &File, seen: &Seen, named: &BTreeMap<u32, Name>, ports: Ports) -> Links {
        let links = Links::new(seen.kernel.links.clone(), seen.kernel.finds_tables)
            .passing(seen.passing.clone());
        // An interface that has a name of the file now is that one, whatever it was before.
        let names: BTreeSet<&str> = file.interfaces().map(|name| &**name).collect();
        let now = seen.kernel.links.iter().filter(|link| names.contains(link.name.as_str()));
        let now: BTreeSet<u32> = now.map(|link| link.index).collect();
        let renamed = named.iter().filter(|(index, _)| !now.contains(index));
        let links = links.also_called(renamed.map(|(index, name)| (&**name, *index)));
        match ports {
            Ports::Present => links.lacking_functions(),
            Ports::New => links.lacking(self.known.clone()),
        }
    }

    /// Returns the ports, and their exits, that are left out: they are closed, or do not exist and need not.
    fn missing(&self, file: &File, links: &Links, ports: Ports) -> BTreeSet<Name> {
        let named = file.ports.iter().flat_map(|(name, port)| [Some(name), port.exit.as_ref()]);
        let is_missing = |name: &&Name| {
            (!links.has(name) && self.may_lack(name, ports)) || self.closed.contains(*name)
        };
        named.flatten().filter(is_missing).cloned().collect()
    }
}

/// Resolves `file` without the ports in `missing`. Also leaves those out that cannot be ports, unless they
/// have to be present: a tenant may create its interface again as one of another kind.
fn resolve_present<'f>(
    file: &'f File,
    links: &Links,
    mut missing: BTreeSet<Name>,
    ports: Ports,
    tenants: &mut Tenants,
) -> Result<Resolved<'f>, Error> {
    loop {
        let present = match missing.is_empty() {
            true => Cow::Borrowed(file),
            false => Cow::Owned(file.without_ports(&missing)),
        };
        let problems = match resolve(&present, links, tenants) {
            Ok(forwarding) => return Ok(Resolved { forwarding, file: present, missing }),
            Err(problems) => problems,
        };
        let is_new = |name: &&Name| !missing.contains(*name);
        let unusable = problems.iter().filter_map(Unresolved::unusable_port).filter(is_new);
        let unusable: Vec<Name> = unusable.filter(|_| ports == Ports::Present).cloned().collect();
        if unusable.is_empty() {
            return Err(Error::Resolve(problems));
        }
        missing.extend(unusable);
    }
}
