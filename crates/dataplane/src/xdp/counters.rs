//! Which counters are whose.

use bpf::Srv6;

/// The counters that SIDs and policies are given.
#[derive(Debug)]
pub(super) struct Counters {
    fresh: u32,
    end: u32,
    free: Vec<u32>,
    /// Free, but a packet that found their entries earlier may still count there.
    retired: Vec<u32>,
}

impl Counters {
    /// Those from `first` up to `end`.
    pub(super) fn new(first: u32, end: u32) -> Self {
        Self { fresh: first, end, free: Vec::new(), retired: Vec::new() }
    }

    /// A counter that stands at zero. There are as many as SIDs and policies have room, so that
    /// whoever is to have one finds one.
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
