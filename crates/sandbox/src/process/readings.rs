//! Readings of a tenant's VM in shared memory, from the switch to the sandbox process: values by
//! key index, protected by a sequence lock. They are located before the rings, in unused space.
//!
//! ```text
//! 1024  sequence number (u64): odd while the switch writes
//! 1088  for each key: presence of a value, the value, its timestamp, and the time until which
//!       it is fresh (u64 each)
//! ```
//!
//! The process does not see the VM's memory, only validated values. The switch does not read the
//! memory back and never waits.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nix::errno::Errno;
use p4_object::vm::{MAX_KEYS, Reading};

use sandbox_queue::{HEADER, Mapping};

const SEQUENCE: usize = 1024;
const SLOTS: usize = 1088;
const SLOT: usize = 32;
const END: usize = SLOTS + MAX_KEYS * SLOT;
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
        self.sequence = self.sequence.wrapping_add(2);
        self.word(SEQUENCE).store(self.sequence.wrapping_sub(1), Ordering::Relaxed);
        // The odd number becomes visible before the new words.
        fence(Ordering::Release);
        for (place, reading) in all.iter().take(MAX_KEYS).enumerate() {
            let words = match reading {
                Some(Reading { value, at_ns, until_ns }) => [1, *value, *at_ns, *until_ns],
                None => [0; 4],
            };
            for (part, word) in words.into_iter().enumerate() {
                self.word(SLOTS + place * SLOT + part * 8).store(word, Ordering::Relaxed);
            }
        }
        self.word(SEQUENCE).store(self.sequence, Ordering::Release);
    }

    /// Reader (process): takes new readings. During a write, the previous readings stay: each
    /// carries the end of its freshness.
    pub(super) fn read(&mut self, all: &mut [Option<Reading>]) {
        let before = self.word(SEQUENCE).load(Ordering::Acquire);
        if before == self.sequence || !before.is_multiple_of(2) {
            return;
        }
        let mut read = [None; MAX_KEYS];
        for (place, reading) in read.iter_mut().take(all.len()).enumerate() {
            let part =
                |part: usize| self.word(SLOTS + place * SLOT + part * 8).load(Ordering::Relaxed);
            let [is_there, value, at_ns, until_ns] = [0, 1, 2, 3].map(part);
            *reading = (is_there == 1).then_some(Reading { value, at_ns, until_ns });
        }
        fence(Ordering::Acquire);
        if self.word(SEQUENCE).load(Ordering::Relaxed) == before {
            self.sequence = before;
            let count = all.len().min(MAX_KEYS);
            all[..count].copy_from_slice(&read[..count]);
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

    #[test]
    fn a_switch_that_is_writing_is_not_waited_for() {
        let memory = sealed("test", HEADER).unwrap();
        let [mut switch, mut process] = [0, 1].map(|_| Readings::new(&memory).unwrap());
        let mut seen = [None; 1];
        switch.write(&[reading(1)]);
        process.read(&mut seen);
        switch.word(SEQUENCE).store(3, Ordering::Relaxed);
        switch.word(SLOTS + 8).store(9, Ordering::Relaxed);
        process.read(&mut seen);
        assert_eq!(seen, [reading(1)]);
    }
}
