//! Allocation of counters.

use bpf::Srv6;

/// The counters for SIDs and policies.
#[derive(Debug)]
pub(super) struct Counters {
    fresh: u32,
    end: u32,
    free: Vec<u32>,
    /// Free counters that a packet may still increment, since it found their entries before they
    /// were removed.
    retired: Vec<u32>,
}

impl Counters {
    /// Manages the counters from `first` up to `end`.
    pub(super) fn new(first: u32, end: u32) -> Self {
        Self { fresh: first, end, free: Vec::new(), retired: Vec::new() }
    }

    /// Allocates a counter and resets it. There are as many counters as there can be SIDs and
    /// policies, so that the allocation always succeeds.
    pub(super) fn take(&mut self, srv6: &Srv6) -> u32 {
        if self.free.is_empty() && self.fresh < self.end {
            self.fresh += 1;
            return self.fresh - 1;
        }
        if self.free.is_empty() {
            bpf::wait_for_packets();
            self.free.append(&mut self.retired);
        }
        let counter = self.free.pop().expect("there is a counter for each entry");
        srv6.reset(counter);
        counter
    }

    pub(super) fn free(&mut self, counter: u32) {
        self.retired.push(counter);
    }
}
