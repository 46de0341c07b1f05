//! Ingress filters of ports, for packets that the XDP program leaves to the kernel.

use std::collections::{BTreeMap, BTreeSet};

use bpf::{Srv6, unfilter_port};

use super::pins::Pins;
use crate::Error;
use crate::forwarding::Port;

/// The ports with a filter of the current program.
#[derive(Debug, Default)]
pub(super) struct Filters(BTreeSet<u32>);

/// Ports that had no filter, not even of an earlier daemon.
#[derive(Debug, Default)]
pub(super) struct NewFilters(Vec<u32>);

impl Filters {
    /// Attaches the program's filter to ports that have none of it. On an error, no port has a new one.
    pub(super) fn put(
        &mut self,
        srv6: &Srv6,
        ports: &BTreeMap<u32, Port>,
        pins: &Pins,
    ) -> Result<NewFilters, Error> {
        let mut new = NewFilters::default();
        for index in ports.keys().filter(|index| !self.0.contains(index)).collect::<Vec<_>>() {
            let pin = pins.filter(*index);
            let is_new = !pin.exists();
            if let Err(error) = srv6.filter_port(*index, &pin) {
                self.take_back(new, pins);
                return Err(error.into());
            }
            self.0.insert(*index);
            new.0.extend(is_new.then_some(*index));
        }
        Ok(new)
    }

    /// Detaches new filters after a failure. It is reported, and not one that this has.
    pub(super) fn take_back(&mut self, new: NewFilters, pins: &Pins) {
        for index in new.0 {
            let _ = unfilter_port(index, &pins.filter(index));
            self.0.remove(&index);
        }
    }

    /// Attaches another program's filter to all ports.
    pub(super) fn replace(
        &mut self,
        srv6: &Srv6,
        ports: &BTreeMap<u32, Port>,
        pins: &Pins,
    ) -> Result<(), Error> {
        self.0.clear();
        self.put(srv6, ports, pins).map(drop)
    }

    /// Detaches the filters from all interfaces except `ports`, including those of earlier daemons.
    pub(super) fn leave_others(
        &mut self,
        ports: &BTreeMap<u32, Port>,
        pins: &Pins,
    ) -> Result<(), Error> {
        let all: BTreeSet<u32> = self.0.iter().copied().chain(pins.filters()?).collect();
        for index in all.into_iter().filter(|index| !ports.contains_key(index)) {
            unfilter_port(index, &pins.filter(index))?;
            self.0.remove(&index);
        }
        Ok(())
    }
}
