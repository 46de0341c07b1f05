//! Drops of service functions' packets, by netfilter hook.

use std::os::fd::AsFd as _;

use libbpf_rs::{MapCore, MapFlags};

use crate::abi::{Abi, value_of};
use crate::skeleton::types::{drops, hook};
use crate::{Error, Srv6};

// SAFETY: it is repr(C) and an array of integers.
unsafe impl Abi for drops {}

/// Packets of a service function that the kernel dropped, by location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drops {
    /// Dropped by rules at the prerouting hook.
    pub prerouting: u64,
    /// Dropped by rules at the forward hook.
    pub forward: u64,
    /// Dropped by rules at the postrouting hook.
    pub postrouting: u64,
    /// Dropped by the kernel for other reasons.
    pub no_hook: u64,
}

impl Srv6 {
    /// Starts counting. Does nothing if the kernel lacks the required BTF.
    pub(crate) fn watch_drops(&self) -> Result<(), Error> {
        let Some(program) = self.drop_program() else { return Ok(()) };
        if self.drop_link().get().is_none() {
            let failed = |source| Error::load("dropped", source);
            let link = program.attach_trace().map_err(failed)?;
            let link = link.as_fd().try_clone_to_owned().map_err(|e| failed(e.into()))?;
            // If another thread has set a link, it is equivalent.
            let _ = self.drop_link().set(link);
        }
        Ok(())
    }

    /// Returns the drops of the function with `counter` for returning packets; none if drops are
    /// not counted.
    pub fn drops(&self, counter: u32) -> Option<Drops> {
        self.drop_link().get()?;
        let found = self.drops_map().lookup_percpu(&counter.to_ne_bytes(), MapFlags::ANY);
        let mut sum = [0; hook::HOOKS.0 as usize];
        for row in found.ok()?.into_iter().flatten() {
            let row: drops = value_of(&row)?;
            sum.iter_mut().zip(row.packets).for_each(|(sum, one)| *sum += one);
        }
        let at = |at: hook| sum[at.0 as usize];
        Some(Drops {
            prerouting: at(hook::HOOK_PREROUTING),
            forward: at(hook::HOOK_FORWARD),
            postrouting: at(hook::HOOK_POSTROUTING),
            no_hook: at(hook::NO_HOOK),
        })
    }

    /// Resets the drops of a counter that is assigned to another function.
    pub(crate) fn forget_drops(&self, counter: u32) {
        // Most counters have none.
        let _ = self.drops_map().delete(&counter.to_ne_bytes());
    }
}
