//! The writer's mapping of shared memory: words that others may read and write at any time.

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

/// All of the layout, mapped to be written.
#[derive(Debug)]
pub(crate) struct Mapping(NonNull<AtomicU64>);

// SAFETY: the words are atomics, which any thread may write.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn new(file: &File) -> Result<Self, Errno> {
        let length = NonZeroUsize::new(SIZE).ok_or(Errno::EINVAL)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses a place where nothing is.
        let at = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, file, 0)? };
        Ok(Self(at.cast()))
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < WORDS, "word {at} of {WORDS}");
        // SAFETY: within the mapping, which begins at a page and is there as long as this; nothing
        // reaches it but by atomics.
        unsafe { self.0.add(at).as_ref() }
    }

    /// Puts the first of these words in place, behind the sequence lock: all but the sequence number, which
    /// is odd meanwhile, whatever it was before.
    pub(crate) fn write(&self, words: &[u64]) {
        let sequence = self.word(SEQUENCE);
        let odd = sequence.load(Ordering::Relaxed).wrapping_add(1) | 1;
        sequence.store(odd, Ordering::Relaxed);
        // Nobody sees a new word with an even number from before.
        fence(Ordering::Release);
        for (at, word) in words.iter().enumerate().filter(|(at, _)| *at != SEQUENCE) {
            self.word(at).store(word.to_le(), Ordering::Relaxed);
        }
        sequence.store(odd.wrapping_add(1), Ordering::Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, with this size; whoever has a word borrows this.
        let unmapped = unsafe { munmap(self.0.cast(), SIZE) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
