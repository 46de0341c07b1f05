//! The writer's mapping of device memory, which others may read and write at any time.

use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::layout::{SIZE, header};

const WORDS: usize = SIZE / 8;
const SEQUENCE: usize = header::SEQUENCE / 8;
const _: () = assert!(SIZE.is_multiple_of(8) && header::SEQUENCE.is_multiple_of(8));

/// Writable mapping of the whole layout.
#[derive(Debug)]
pub(crate) struct Mapping(NonNull<AtomicU64>);

// SAFETY: the words are atomics, which any thread may access.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn new(file: &File) -> Result<Self, Errno> {
        let length = NonZeroUsize::new(SIZE).ok_or(Errno::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses an unused address range.
        let at = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, file, 0)? };
        Ok(Self(at.cast()))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < WORDS, "word {at} of {WORDS}");
        // SAFETY: within bounds of the mapping, which is page-aligned and lives as long as `self`.
        // All accesses are atomic.
        unsafe { self.0.add(at).as_ref() }
    }

    /// Writes the first words under the sequence lock, except for the sequence number. That is odd
    /// during the write, whatever its previous value.
    pub(crate) fn write(&self, words: &[u64]) {
        let sequence = self.word(SEQUENCE);
        let odd = sequence.load(Ordering::Relaxed).wrapping_add(1) | 1;
        sequence.store(odd, Ordering::Relaxed);
        // A reader that sees a new word must not see the old even number afterwards.
        fence(Ordering::Release);
        for (at, word) in words.iter().enumerate().filter(|(at, _)| *at != SEQUENCE) {
            self.word(at).store(word.to_le(), Ordering::Relaxed);
        }
        sequence.store(odd.wrapping_add(1), Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size; references to words borrow `self`.
        let unmapped = unsafe { munmap(self.0.cast(), SIZE) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
