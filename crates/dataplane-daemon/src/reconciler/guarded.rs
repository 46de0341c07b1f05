//! The interfaces to service functions that netfilter guards.

use std::collections::BTreeSet;

use dataplane::forwarding::Forwarding;
use netlink::{Link, has_local_senders};

use super::{Ports, Reconciler};
use crate::Error;

/// Returns the interfaces to service functions on which tc may miss packets.
pub(super) fn guarded(forwarding: &Forwarding, links: &[Link]) -> BTreeSet<u32> {
    let all = forwarding.proxies().flat_map(|proxy| [proxy.to.index, proxy.back.index]);
    all.flatten().filter(|index| has_local_senders(links, *index)).collect()
}

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
