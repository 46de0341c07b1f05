//! Counters of the program, summed over all CPUs.

use std::sync::atomic::{Ordering, fence};

use crate::skeleton::types;
use crate::{Count, Srv6};

impl Srv6 {
    /// Returns a counter's packets and layer 3 bytes, summed over all CPUs.
    pub fn count(&self, counter: u32) -> Count {
        self.sum(|row| self.count_in(row, counter))
    }

    /// Returns the packets and layer 3 bytes of a SID, given by its record, summed over all CPUs.
    pub fn count_of_sid(&self, record: u32) -> Count {
        let sid = self.sids.get(record);
        self.sum(|row| {
            // Read first: if the entry is evicted meanwhile, its count is then in the counter.
            let found = self.found_sids.count(row, &sid);
            fence(Ordering::Acquire);
            let settled = self.count_in(row, sid.counter);
            found.filter(|c| c.packets > settled.packets).unwrap_or(settled)
        })
    }

    fn count_in(&self, row: usize, counter: u32) -> types::count {
        self.counts.read(row * self.sizes.counters() as usize + counter as usize)
    }

    fn sum(&self, count: impl Fn(usize) -> types::count) -> Count {
        let rows = self.counts.len() / self.sizes.counters() as usize;
        (0..rows).map(count).fold(Count::default(), |sum, one| Count {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
        })
    }

    /// Sets a counter to zero.
    pub fn reset(&self, counter: u32) {
        self.forget_drops(counter);
        let row = self.sizes.counters() as usize;
        for at in (counter as usize..self.counts.len()).step_by(row) {
            self.counts.write(at, types::count::default());
        }
    }
}
