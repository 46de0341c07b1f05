//! Packet buffers with a free list.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Capacity of a small buffer, enough for an ordinary packet.
const SMALL: usize = 2048;
/// Maximum number of free buffers of each size per thread.
const KEPT: usize = 4096;

thread_local! {
    /// Free lists of small buffers and of larger ones.
    static FREE: RefCell<[Vec<Vec<u8>>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
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
        let kind = usize::from(length > SMALL);
        let free = FREE.with_borrow_mut(|free| free[kind].pop());
        let mut bytes = free.unwrap_or_else(|| Vec::with_capacity(length.max(SMALL)));
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
        let kind = usize::from(bytes.capacity() > SMALL);
        // The free list may already be destroyed while the thread exits.
        let _ = FREE.try_with(|free| {
            let free = &mut free.borrow_mut()[kind];
            if free.len() < KEPT {
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
