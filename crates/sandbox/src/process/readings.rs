//! Readings of a tenant's VM in shared memory, from the switch to the sandbox process: values by
//! key index, in two copies under a sequence latch. They are located before the rings, in unused
//! space.
//!
//! ```text
//! 1024  sequence number (u64): readers use the first copy while it is even, else the second
//! 1088  for each key: presence of a value, the value, its timestamp, and the time until which
//!       it is fresh (u64 each)
//! 3136  the second copy
//! ```
//!
//! The switch writes the copy that readers do not use, so that a process also finds the last
//! values while the switch is suspended in a write. The process does not see the VM's memory, only
//! validated values. The switch does not read the memory back, and neither side waits.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nix::errno::Errno;
use p4_object::vm::{MAX_KEYS, Reading};

use sandbox_queue::{HEADER, Mapping};

const SEQUENCE: usize = 1024;
const SLOTS: usize = 1088;
const SLOT: usize = 32;
const COPY: usize = MAX_KEYS * SLOT;
const END: usize = SLOTS + 2 * COPY;
const _: () = assert!(END <= HEADER);

/// Shared memory of the readings.
#[derive(Debug)]
pub(super) struct Readings {
    mapping: Mapping,
    /// Last sequence number written by the switch, or read by the process.
    sequence: u64,
}

impl Readings {
    /// Maps the readings in the rings' memory.
    pub(super) fn new(rings: impl AsFd) -> Result<Self, Errno> {
        Self::mapped(|size| Mapping::new(rings, size))
    }

    /// Like [`Readings::new`], in memory that `map` maps.
    pub(super) fn mapped(map: impl FnOnce(usize) -> Result<Mapping, Errno>) -> Result<Self, Errno> {
        Ok(Self { mapping: map(END)?, sequence: 0 })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the word is aligned and in the mapping, which outlives the reference. These words
        // are accessed only as atomics.
        unsafe { self.mapping.at(at, 8).cast::<AtomicU64>().as_ref() }
    }

    /// Writer (switch): publishes all readings.
    pub(super) fn write(&mut self, all: &[Option<Reading>]) {
        for copy in [0, 1] {
            // Publishes the other copy, which is complete.
            self.sequence = self.sequence.wrapping_add(1);
            self.word(SEQUENCE).store(self.sequence, Ordering::Release);
            // The number becomes visible before the new words.
            fence(Ordering::Release);
            self.fill(copy, all);
        }
    }

    fn fill(&self, copy: usize, all: &[Option<Reading>]) {
        for (place, reading) in all.iter().take(MAX_KEYS).enumerate() {
            let words = match reading {
                Some(Reading { value, at_ns, until_ns }) => [1, *value, *at_ns, *until_ns],
                None => [0; 4],
            };
            for (part, word) in words.into_iter().enumerate() {
                self.slot_word(copy, place, part).store(word, Ordering::Relaxed);
            }
        }
    }

    fn slot_word(&self, copy: usize, place: usize, part: usize) -> &AtomicU64 {
        self.word(SLOTS + copy * COPY + place * SLOT + part * 8)
    }

    /// Reader (process): takes new readings. If the switch publishes during each attempt, the
    /// previous readings stay: each carries the end of its freshness.
    pub(super) fn read(&mut self, all: &mut [Option<Reading>]) {
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            let before = self.word(SEQUENCE).load(Ordering::Acquire);
            if before == self.sequence {
                return;
            }
            let copy = usize::from(!before.is_multiple_of(2));
            let mut read = [None; MAX_KEYS];
            for (place, reading) in read.iter_mut().take(all.len()).enumerate() {
                let part = |part| self.slot_word(copy, place, part).load(Ordering::Relaxed);
                let [is_there, value, at_ns, until_ns] = [0, 1, 2, 3].map(part);
                *reading = (is_there == 1).then_some(Reading { value, at_ns, until_ns });
            }
            fence(Ordering::Acquire);
            if self.word(SEQUENCE).load(Ordering::Relaxed) == before {
                self.sequence = before;
                let count = all.len().min(MAX_KEYS);
                all[..count].copy_from_slice(&read[..count]);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use sandbox_queue::sealed;

    fn reading(value: u64) -> Option<Reading> {
        Some(Reading { value, at_ns: value, until_ns: value })
    }

    #[test]
    fn readings_are_consistent() {
        let memory = sealed("test", HEADER).unwrap();
        let [mut switch, mut process] = [0, 1].map(|_| Readings::new(&memory).unwrap());
        let mut seen = [None; 3];
        process.read(&mut seen);
        assert_eq!(seen, [None; 3]);
        switch.write(&[reading(1), None, reading(3)]);
        process.read(&mut seen);
        assert_eq!(seen, [reading(1), None, reading(3)]);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (2..200_000).for_each(|value| switch.write(&[reading(value); 3]));
                done.store(true, Ordering::Relaxed);
            });
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                process.read(&mut seen);
                let [one, two, three] = seen.map(|one| one.map(|one| one.value));
                if two.is_some() {
                    assert_eq!((one, two), (three, three));
                    assert!(one >= Some(last));
                    last = one.unwrap();
                }
            }
        });
        process.read(&mut seen);
        assert_eq!(seen, [reading(199_999); 3]);
    }

    /// A process that starts at that moment has no previous readings.
    #[test]
    fn the_last_readings_are_found_while_the_switch_writes() {
        let memory = sealed("test", HEADER).unwrap();
        let mut switch = Readings::new(&memory).unwrap();
        switch.write(&[reading(1)]);
        for copy in [0, 1] {
            switch.sequence += 1;
            switch.word(SEQUENCE).store(switch.sequence, Ordering::Relaxed);
            switch.slot_word(copy, 0, 1).store(9, Ordering::Relaxed);
            let mut seen = [None; 1];
            Readings::new(&memory).unwrap().read(&mut seen);
            let value = seen[0].map(|reading| reading.value);
            // The first copy is complete when the second is written.
            assert_eq!(value, Some([1, 9][copy]));
        }
    }
}
