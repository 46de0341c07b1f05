//! Ends of a ring: producer and consumer.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{NEED_WAKEUP, Ring};

/// Shared parts of a ring with entries of type `T`.
#[derive(Debug, Clone, Copy)]
struct Shared<T> {
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    mask: u32,
    _entries: PhantomData<T>,
}

impl<T: Copy> Shared<T> {
    /// # Safety
    ///
    /// The ring's pointers are valid, and remain so while an end exists; entries are of type `T`.
    unsafe fn new(ring: &Ring) -> Self {
        assert!(ring.size.is_power_of_two() && ring.mask == ring.size - 1, "a power of two");
        Self {
            producer: ring.producer.cast(),
            consumer: ring.consumer.cast(),
            flags: ring.flags.cast(),
            entries: ring.entries.cast(),
            mask: ring.mask,
            _entries: PhantomData,
        }
    }

    fn size(&self) -> u32 {
        self.mask + 1
    }

    fn entry(&self, index: u32) -> *mut T {
        // SAFETY: the index is within the ring, whose entries `new` requires to be valid.
        unsafe { self.entries.add((index & self.mask) as usize) }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: `new` requires it; both sides access the word atomically.
        unsafe { &*self.flags }
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.producer }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.consumer }
    }
}

/// Producing end. The consumer is the kernel or a client; its index is not trusted.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Shared<T>,
    next: u32,
}

// SAFETY: the memory is shared anyway, and only one thread at a time uses an end.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T: Copy> Producer<T> {
    /// # Safety
    ///
    /// The ring's pointers are valid while the end exists, its entries are of type `T`, and there is
    /// no other producer.
    pub unsafe fn new(ring: &Ring) -> Self {
        // SAFETY: required by this function as well.
        let shared = unsafe { Shared::new(ring) };
        Self { next: shared.producer().load(Ordering::Relaxed), shared }
    }

    /// Size of the ring in entries.
    pub fn size(&self) -> u32 {
        self.shared.size()
    }

    /// Number of free entries. Zero if the consumer's index is invalid.
    pub fn free(&self) -> u32 {
        let used = self.next.wrapping_sub(self.shared.consumer().load(Ordering::Acquire));
        self.shared.size().saturating_sub(used)
    }

    /// Number of entries that the consumer has not taken, published or not.
    pub fn pending(&self) -> u32 {
        self.shared.size() - self.free()
    }

    /// Writes the next entry, which must be free. The consumer sees it after [`Self::publish`].
    pub fn put(&mut self, entry: T) {
        // SAFETY: the entry is valid memory. The consumer does not read it before it is published;
        // one that does reads garbage of its own making.
        unsafe { self.shared.entry(self.next).write_volatile(entry) };
        self.next = self.next.wrapping_add(1);
    }

    /// Publishes the entries written so far.
    pub fn publish(&self) {
        self.shared.producer().store(self.next, Ordering::Release);
    }

    /// Returns true if the consumer needs a system call to continue.
    pub fn needs_wakeup(&self) -> bool {
        self.shared.flags().load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// Consuming end. The producer is the kernel or a client; its index is not trusted.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Shared<T>,
    next: u32,
}

// SAFETY: as for `Producer`.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T: Copy> Consumer<T> {
    /// # Safety
    ///
    /// The ring's pointers are valid while the end exists, its entries are of type `T`, and there is
    /// no other consumer.
    pub unsafe fn new(ring: &Ring) -> Self {
        // SAFETY: required by this function as well.
        let shared = unsafe { Shared::new(ring) };
        Self { next: shared.consumer().load(Ordering::Relaxed), shared }
    }

    /// Size of the ring in entries.
    pub fn size(&self) -> u32 {
        self.shared.size()
    }

    /// Number of entries to take. At most the size of the ring, if the producer's index is invalid.
    pub fn available(&self) -> u32 {
        let new = self.shared.producer().load(Ordering::Acquire).wrapping_sub(self.next);
        new.min(self.shared.size())
    }

    /// Takes the next entry, which must be available.
    pub fn take(&mut self) -> T {
        // SAFETY: the entry is valid memory, and every bit pattern a valid entry.
        let entry = unsafe { self.shared.entry(self.next).read_volatile() };
        self.next = self.next.wrapping_add(1);
        entry
    }

    /// Returns the taken entries to the producer.
    pub fn release(&self) {
        self.shared.consumer().store(self.next, Ordering::Release);
    }
}
