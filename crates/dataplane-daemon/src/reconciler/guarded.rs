//! Guards the interfaces to service functions by netfilter, before and after a change.

use std::collections::BTreeSet;

use super::{Ports, Reconciler};
use crate::Error;

impl Reconciler {
    /// Guards these interfaces before a change. A change of the kernel is followed also without.
    pub(super) fn guard_first(
        &mut self,
        interfaces: &BTreeSet<u32>,
        ports: Ports,
    ) -> Result<(), Error> {
        match self.host.guard(interfaces) {
            Err(error) if ports == Ports::Present => self.warn_once(error.to_string()),
            done => return done,
        }
        Ok(())
    }

    /// Guards exactly these interfaces, after a change that has guarded them all.
    pub(super) fn guard(&mut self, interfaces: &BTreeSet<u32>) {
        if let Err(error) = self.host.guard(interfaces) {
            // It drops packets of an interface that leads to no function.
            tracing::warn!("a rule is left over: {}", api::in_one_line(&error));
        }
    }
}
