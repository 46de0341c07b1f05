//! Allocator for a fixed number of slots.

/// Allocation state of the slots.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Freed slots, reused last in, first out.
    free: Vec<u32>,
    /// Allocation bitmap.
    taken: Vec<u64>,
    /// Lowest slot that has never been allocated.
    untouched: u32,
    len: u32,
    most: u32,
}

impl Slots {
    pub(crate) fn new(most: u32) -> Self {
        let words = most.div_ceil(64) as usize;
        Self {
            free: Vec::with_capacity(most as usize),
            taken: vec![0; words],
            untouched: 0,
            len: 0,
            most,
        }
    }

    pub(crate) fn take(&mut self) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.untouched < self.most => {
                self.untouched += 1;
                self.untouched - 1
            }
            None => return None,
        };
        self.taken[slot as usize / 64] |= 1 << (slot % 64);
        self.len += 1;
        Some(slot)
    }

    /// Frees an allocated slot.
    pub(crate) fn give(&mut self, slot: u32) {
        self.taken[slot as usize / 64] &= !(1 << (slot % 64));
        self.free.push(slot);
        self.len -= 1;
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Allocated slots at or after `first`.
    pub(crate) fn from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        (first..self.untouched)
            .filter(|slot| self.taken[*slot as usize / 64] >> (slot % 64) & 1 == 1)
    }

    pub(crate) fn clear(&mut self) {
        self.free.clear();
        self.taken.fill(0);
        (self.untouched, self.len) = (0, 0);
    }
}
