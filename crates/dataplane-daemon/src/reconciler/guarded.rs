//! Guards interfaces by netfilter, before and after a change.

use model::dataplane::File;

use super::interfaces::guarded;
use super::{Ports, Reconciler};
use crate::Error;
use crate::guard::Guarded;

impl Reconciler {
    /// Guards interfaces before a change from `before` to `after`: to functions, those of both, ports whose
    /// packets are marked all the time, and names of both, if the interface does not have its program all
    /// the time. A change of the kernel is followed also without.
    pub(super) fn guard_first(
        &mut self,
        before: Option<&Guarded>,
        after: &Guarded,
        ports: Ports,
    ) -> Result<(), Error> {
        let first = |before: &Guarded| Guarded {
            functions: before.functions.union(&after.functions).copied().collect(),
            ports: before.ports.intersection(&after.ports).copied().collect(),
            names: before.names.intersection(&after.names).cloned().collect(),
            attached: before.attached.intersection(&after.attached).copied().collect(),
        };
        let guarded = self.host.check_guard(after).and_then(|()| match before {
            Some(before) => self.host.guard(&first(before)),
            None => Ok(()),
        });
        match guarded {
            Err(error) if ports == Ports::Present => self.warn_once(error.to_string()),
            done => return done,
        }
        Ok(())
    }

    /// Returns the interfaces that are guarded in the present state, which is that of `file`.
    pub(super) fn guarded_now(&self, file: &File) -> Guarded {
        let links = self.seen.as_ref().map_or(&[][..], |seen| &seen.links);
        guarded(self.plane.current(), (self.which, file), links)
    }

    /// Returns those at the start, when the programs of an earlier daemon may still mark packets.
    pub(super) fn guarded_at_start(&mut self, after: &Guarded) -> Result<Guarded, Error> {
        let attached = self.plane.attached()?.into_keys();
        let attached = attached.filter(|index| after.attached.contains(index)).collect();
        Ok(Guarded { attached, ..after.clone() })
    }

    /// Guards exactly these interfaces, after a change.
    pub(super) fn guard(&mut self, interfaces: &Guarded) {
        if let Err(error) = self.host.guard(interfaces) {
            tracing::warn!("{}; the next attempts follow each second", api::in_one_line(&error));
        }
    }
}
