//! Memory that a function allocates: a test program with the allocator [`Counting`] measures it with
//! [`peak_of`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes allocated by this thread: current and peak.
    static BYTES: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts the bytes of each thread:
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`
#[derive(Debug)]
pub struct Counting;

fn count(by: i64) {
    // Thread-local storage is not available while a thread exits.
    let _ = BYTES.try_with(|bytes| {
        let (now, most) = bytes.get();
        bytes.set((now + by, most.max(now + by)));
    });
}

// SAFETY: delegates to the system allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Runs a job; returns its result, and the peak of the bytes that this thread allocated meanwhile.
pub fn peak_of<T>(job: impl FnOnce() -> T) -> (T, i64) {
    let (before, _) = BYTES.get();
    BYTES.set((before, before));
    let done = job();
    (done, BYTES.get().1 - before)
}
