//! Packet buffers with a free list.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Capacities of buffers. The smallest has room for an ordinary packet, the largest for a packet of
/// 64 KiB before segmentation. A packet takes at most twice its length, or the smallest.
const SIZES: [usize; 6] = [2080, 4160, 8320, 16_640, 33_280, 66_560];
/// Maximum number of free buffers of each size per thread.
const KEPT: [usize; SIZES.len()] = [4096, 1024, 1024, 1024, 1024, 1024];

thread_local! {
    /// Free lists, by size.
    static FREE: RefCell<[Vec<Vec<u8>>; SIZES.len()]> =
        const { RefCell::new([const { Vec::new() }; SIZES.len()]) };
}

/// A packet's bytes. Dropping the buffer returns its memory to a per-thread free list, so that
/// packets normally need no allocation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// Creates a buffer that holds a copy of `bytes`.
    pub(crate) fn copy_from(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_capacity(bytes.len());
        buffer.0.extend_from_slice(bytes);
        buffer
    }

    /// Creates an empty buffer with this capacity.
    pub(crate) fn with_capacity(length: usize) -> Self {
        let size = SIZES.iter().position(|size| length <= *size);
        let free = size.and_then(|size| FREE.with_borrow_mut(|free| free[size].pop()));
        let capacity = size.map_or(length, |size| SIZES[size]);
        let mut bytes = free.unwrap_or_else(|| Vec::with_capacity(capacity));
        bytes.clear();
        Self(bytes)
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::copy_from(&self.0)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // A buffer that has grown belongs to no list.
        let Some(size) = SIZES.iter().position(|size| bytes.capacity() == *size) else { return };
        // The free list may already be destroyed while the thread exits.
        let _ = FREE.try_with(|free| {
            let free = &mut free.borrow_mut()[size];
            if free.len() < KEPT[size] {
                free.push(bytes);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_at_most_twice_its_length() {
        for length in [1, 2080, 2081, 9000, 33_281, 66_560, 70_000] {
            drop(Buffer::with_capacity(66_560));
            let buffer = Buffer::copy_from(&vec![0; length]);
            assert!(
                (length..=(2 * length).max(SIZES[0])).contains(&buffer.0.capacity()),
                "{length}"
            );
        }
    }
}
