//! Ingress filters: of ports, for packets that the XDP program leaves to the kernel, and of tunnels.

use std::collections::{BTreeMap, BTreeSet};

use bpf::{Srv6, unfilter_port};
use netlink::{Handle, Link};

use super::pins::Pins;
use crate::Error;

/// The interfaces with a filter of the current program.
#[derive(Debug, Default)]
pub(super) struct Filters {
    on: BTreeSet<u32>,
    /// True once the interfaces of earlier daemons are known.
    has_looked: bool,
}

/// Interfaces that had no filter, not even that of an earlier daemon.
#[derive(Debug, Default)]
pub(super) struct NewFilters(Vec<u32>);

impl Filters {
    /// Attaches the program's filter to interfaces that have none of it. On an error, none has a new
    /// one. `interfaces`: names by index. Interfaces that have been removed are left out.
    pub(super) fn put(
        &mut self,
        srv6: &Srv6,
        interfaces: &BTreeMap<u32, String>,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<NewFilters, Error> {
        let mut new = NewFilters::default();
        let mut earlier: BTreeSet<u32> = pins.attached()?.into_keys().collect();
        earlier.extend(pins.filters()?);
        for (index, name) in interfaces {
            if self.on.contains(index) {
                continue;
            }
            if let Err(source) = srv6.filter_port(*index, &pins.filter(*index)) {
                // Users of a node create and remove tunnels. The next listing will show that.
                if matches!(handle.links(), Ok(links) if links.iter().all(|one| one.index != *index))
                {
                    continue;
                }
                self.undo(new, pins);
                return Err(Error::Port { port: name.clone(), index: *index, source });
            }
            self.on.insert(*index);
            new.0.extend((!earlier.contains(index)).then_some(*index));
        }
        Ok(new)
    }

    /// Detaches the filter of an interface that is gone. Another one may have its index now.
    pub(super) fn forget(&mut self, interface: u32, pins: &Pins) {
        let _ = unfilter_port(interface, &pins.filter(interface));
        self.on.remove(&interface);
    }

    /// Forgets interfaces that are gone. Others may have their indices now.
    pub(super) fn forget_gone(&mut self, links: &[Link], pins: &Pins) {
        let present: BTreeSet<u32> = links.iter().map(|link| link.index).collect();
        let gone: Vec<u32> = self.on.difference(&present).copied().collect();
        gone.into_iter().for_each(|index| self.forget(index, pins));
    }

    /// Returns true if an interface has the current program's filter.
    pub(super) fn has(&self, interface: u32) -> bool {
        self.on.contains(&interface)
    }

    /// Detaches new filters after a failure, which is reported.
    pub(super) fn undo(&mut self, new: NewFilters, pins: &Pins) {
        for index in new.0 {
            let _ = unfilter_port(index, &pins.filter(index));
            self.on.remove(&index);
        }
    }

    /// Attaches another program's filter.
    pub(super) fn replace(
        &mut self,
        srv6: &Srv6,
        interfaces: &BTreeMap<u32, String>,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        self.on.clear();
        self.put(srv6, interfaces, pins, handle).map(drop)
    }

    /// Detaches the filters from all interfaces except these, including those of earlier daemons.
    pub(super) fn leave_others(
        &mut self,
        interfaces: &BTreeMap<u32, String>,
        pins: &Pins,
        handle: &mut Handle,
    ) -> Result<(), Error> {
        let mut all: BTreeSet<u32> = self.on.iter().copied().chain(pins.filters()?).collect();
        if !self.has_looked {
            // Before Linux 6.6 there are no pins. Detaching a missing filter is harmless.
            all.extend(handle.links()?.iter().map(|link| link.index));
            self.has_looked = true;
        }
        for index in all.into_iter().filter(|index| !interfaces.contains_key(index)) {
            unfilter_port(index, &pins.filter(index))?;
            self.on.remove(&index);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bpf::srv6::Sizes;

    use super::*;

    /// A tunnel may be removed after the interfaces were listed.
    #[test]
    fn root_an_interface_that_is_gone_is_left_out() {
        let pins = Pins::at("/sys/fs/bpf/kaido-absent".as_ref());
        let srv6 = Srv6::load(Sizes::default()).unwrap();
        let mut handle = Handle::new().unwrap();
        let gone = BTreeMap::from([(0x7fff_fff0, "ppp0".to_owned())]);
        let mut filters = Filters::default();
        let new = filters.put(&srv6, &gone, &pins, &mut handle).unwrap();
        assert!(new.0.is_empty() && !filters.has(0x7fff_fff0));
    }
}
