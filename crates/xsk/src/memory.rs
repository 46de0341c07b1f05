//! A ring in memory of this process.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::{NEED_WAKEUP, Ring};

/// A word on a cache line of its own: the two sides write different ones.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Line(AtomicU32);

/// Memory of a ring whose producer and consumer are both in this process.
#[derive(Debug)]
pub struct RingMemory {
    producer: Box<Line>,
    consumer: Box<Line>,
    flags: Box<Line>,
    /// Written through the pointers of [`RingMemory::view`].
    entries: Box<[AtomicWord]>,
    size: u32,
}

type AtomicWord = std::sync::atomic::AtomicU64;

impl RingMemory {
    /// Creates a ring of `size` entries, a power of two, of `words` 64-bit words each.
    pub fn new(size: u32, words: usize) -> Self {
        let entries = (0..size as usize * words).map(|_| AtomicWord::new(0)).collect();
        Self {
            producer: Box::default(),
            consumer: Box::default(),
            flags: Box::default(),
            entries,
            size,
        }
    }

    /// Returns the ring as the owner of one end sees it at the start.
    pub fn view(&self, is_producer: bool) -> Ring {
        Ring {
            cached_producer: 0,
            cached_consumer: if is_producer { self.size } else { 0 },
            mask: self.size - 1,
            size: self.size,
            producer: self.producer.0.as_ptr(),
            consumer: self.consumer.0.as_ptr(),
            entries: self.entries.as_ptr().cast_mut().cast(),
            flags: self.flags.0.as_ptr(),
        }
    }

    /// Asks the client for a system call after each change of the ring.
    pub fn ask_for_wakeups(&self) {
        self.flags.0.store(NEED_WAKEUP, Ordering::Relaxed);
    }
}
