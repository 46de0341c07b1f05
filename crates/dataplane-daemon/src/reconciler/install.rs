//! Installs a state in the data plane and the kernel.

use dataplane::Dataplane;
use dataplane::forwarding::{Difference, Forwarding, Names};
use model::dataplane::{Dataplane as Which, File};

use super::interfaces::{guarded, tagged};
use super::wanted::Wanted;
use super::{Ports, Reconciler, name};
use crate::Error;

impl Reconciler {
    /// Returns the changes from the current state, `most` of them by name.
    pub(super) fn difference(&self, wanted: &Wanted, file: &File, most: usize) -> Difference {
        let name = |tenant| name(&wanted.tenants, &wanted.table_tenants, tenant);
        let found = Difference::between(self.plane.current(), &wanted.forwarding, &name, most);
        if file.dataplane == self.which {
            return found;
        }
        found.handed_over(self.which.name(), file.dataplane.name())
    }

    /// Changes the forwarding state and the kernel routes that accompany it. On an error the
    /// previous state is restored, except that renamed edges stay down.
    pub(super) fn install(
        &mut self,
        mut wanted: Wanted,
        next: Option<Box<dyn Dataplane>>,
        file: &File,
    ) -> Result<(), Error> {
        let former = self.former.clone();
        let recorded = self.close_former(&wanted, file);
        let links = &wanted.seen.kernel.links;
        let after = guarded(&wanted.forwarding, (file.dataplane, file), links);
        let before = match (&self.seen, wanted.ports) {
            (None, Ports::Present) => Some(self.guarded_at_start(&after)?),
            // The table of an earlier daemon stays until then.
            (None, Ports::New) => None,
            (Some(_), _) => Some(self.guarded_now(self.file.as_ref().unwrap_or(file))),
        };
        self.guard_first(before.as_ref(), &after, wanted.ports)?;
        if let Err(error) = self.install_first(&mut wanted, next, file) {
            self.host.restore(&wanted.seen);
            before.iter().for_each(|before| self.guard(before));
            self.former = former;
            return Err(error);
        }
        self.guard(&after);
        self.missing = wanted.missing;
        self.record(recorded);
        (self.imported, self.tenants) = (wanted.imported, wanted.tenants);
        self.table_tenants = wanted.table_tenants;
        self.plane.set_exact(wanted.seen.exact);
        self.set_locked_mtus(wanted.seen.locked_mtus);
        self.seen = Some(wanted.seen.kernel);
        // Remove routes only now, when the data plane no longer hands packets to them.
        if let Err(error) = self.host.shrink(wanted.routes) {
            // The next read of the kernel's tables removes the surplus.
            tracing::warn!("routes are left over: {}", api::in_one_line(&error));
        }
        self.tenants.keep_only(file);
        self.checks.follow(file, &wanted.down);
        Ok(())
    }

    /// The fallible part of [`Reconciler::install`].
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
        // The kernel does not have the refused routes, so do not refer to them.
        refused.unmark(forwarding);
        routes.leave_out(&refused);
        self.refused.add(&refused);
        if file.dataplane == Which::Xdp {
            tagged(forwarding).into_iter().for_each(|port| self.host.leave_tags(port));
        }
        let forwarding = std::mem::take(forwarding);
        match next {
            Some(next) => self.hand_over(next, forwarding, file),
            None => Ok(self.plane.change_to(forwarding, file)?),
        }
    }

    /// Lets `next` forward, and only then makes this data plane leave. On an error this one
    /// continues.
    fn hand_over(
        &mut self,
        mut next: Box<dyn Dataplane>,
        forwarding: Forwarding,
        file: &File,
    ) -> Result<(), Error> {
        self.end_trace();
        next.change_to(forwarding, file)?;
        let now = self.plane.current().clone();
        if let Err(error) = self.plane.detach() {
            // Report the first error. Restoring cannot fail for lack of space: this state was
            // installed a moment ago.
            let _ = next.detach();
            let _ = self.plane.change_to(now, self.file.as_ref().unwrap_or(file));
            return Err(error.into());
        }
        self.plane = next;
        Ok(())
    }
}
