//! A guard at every interface but those of functions: what this node itself says to a service
//! function's packet would leave by any of them, as the main table says.

use std::collections::BTreeSet;

use bpf::{Srv6, unguard};
use netlink::{Handle, Link};

use super::functions::is_own;
use super::pins::{Pins, remove};
use crate::Error;

/// The interfaces that are guarded.
#[derive(Debug, Default)]
pub(super) struct Guards(BTreeSet<u32>);

impl Guards {
    /// Puts this program's guard everywhere, in the place of an earlier one's.
    pub(super) fn put(
        &mut self,
        srv6: &Srv6,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        let links = handle.links()?;
        for link in links.iter().filter(|link| !is_own(link)) {
            match srv6.guard(link.index, link.mac.is_some(), &pins.guard(link.index)) {
                Ok(()) => {
                    self.0.insert(link.index);
                }
                // It went meanwhile.
                Err(_) if handle.link(&link.name).is_err_and(|error| error.is_not_found()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.0.retain(|index| links.iter().any(|link| link.index == *index));
        for index in pins.guards()? {
            if !self.0.contains(&index) {
                remove(&pins.guard(index))?;
            }
        }
        Ok(())
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether none of the interfaces is without.
    pub(super) fn are_on(&self, links: &[Link]) -> bool {
        links.iter().filter(|link| !is_own(link)).all(|link| self.0.contains(&link.index))
    }
}

/// Takes all off, an earlier program's too.
pub(super) fn take_off(pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
    for link in handle.links()? {
        unguard(link.index, &pins.guard(link.index))?;
    }
    // Of interfaces that are gone.
    for index in pins.guards()? {
        remove(&pins.guard(index))?;
    }
    Ok(())
}
