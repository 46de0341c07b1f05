//! Which counters are whose.

use bpf::Srv6;

/// The counters that SIDs and policies are given.
#[derive(Debug)]
pub(super) struct Counters {
    fresh: u32,
    end: u32,
    free: Vec<u32>,
}

impl Counters {
    /// Those from `first` up to `end`.
    pub(super) fn new(first: u32, end: u32) -> Self {
        Self { fresh: first, end, free: Vec::new() }
    }

    /// A counter that stands at zero. There are as many as SIDs and policies have room, so that
    /// whoever is to have one finds one.
    pub(super) fn take(&mut self, srv6: &Srv6) -> u32 {
        if let Some(counter) = self.free.pop() {
            srv6.reset(counter);
            return counter;
        }
        debug_assert!(self.fresh < self.end, "a counter for each entry");
        self.fresh += 1;
        self.fresh - 1
    }

    pub(super) fn free(&mut self, counter: u32) {
        self.free.push(counter);
    }
}
