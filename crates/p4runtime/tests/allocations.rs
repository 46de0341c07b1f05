//! Memory that a program of a client takes.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use p4runtime::{ObjectInfoError, object_info};

thread_local! {
    /// Bytes allocated by this thread: current and peak.
    static BYTES: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

struct Counting;

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

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result, and the peak of the memory allocated meanwhile.
fn taken<T>(job: impl FnOnce() -> T) -> (T, i64) {
    let (before, _) = BYTES.get();
    BYTES.set((before, before));
    let done = job();
    (done, BYTES.get().1 - before)
}

#[test]
fn p4info_inside_an_object_is_counted_before_it_is_decoded() {
    // The sizes of the messages are computed once.
    assert_eq!(object_info(&[]), Ok(Default::default()));
    // `12 00` is an empty table (`P4Info.tables`, field 2).
    let tables = [0x12, 0].repeat(1 << 20);
    let (read, bytes) = taken(|| object_info(&tables));
    assert!(matches!(read, Err(ObjectInfoError::TooLarge(_))), "{read:?}");
    assert!(bytes < 1 << 20, "{bytes} bytes");
    assert_eq!(object_info(&[0x12, 0xff]), Err(ObjectInfoError::Malformed));
}
