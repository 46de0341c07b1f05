//! Egress filters at all interfaces except those of functions: a local reply to a service
//! function's packet could leave through any of them, as the main table selects.

use std::collections::BTreeSet;

use bpf::{Srv6, unguard};
use netlink::{Handle, Link};

use super::devices::is_own;
use crate::Error;
use crate::xdp::pins::{Pins, remove};

/// The interfaces with an egress filter.
#[derive(Debug, Default)]
pub(in crate::xdp) struct Guards(BTreeSet<u32>);

impl Guards {
    /// Attaches this program's egress filter to all interfaces, replacing those of an earlier
    /// program.
    pub(in crate::xdp) fn put(
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
                // The interface was deleted meanwhile.
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

    /// Forgets all interfaces.
    pub(in crate::xdp) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns true if every interface has an egress filter.
    pub(in crate::xdp) fn are_on(&self, links: &[Link]) -> bool {
        links.iter().filter(|link| !is_own(link)).all(|link| self.0.contains(&link.index))
    }
}

/// Detaches all egress filters, including those of an earlier program.
pub(in crate::xdp) fn take_off(pins: &Pins, handle: &mut Handle) -> Result<(), Error> {
    for link in handle.links()? {
        unguard(link.index, &pins.guard(link.index))?;
    }
    // Of deleted interfaces.
    for index in pins.guards()? {
        remove(&pins.guard(index))?;
    }
    Ok(())
}
