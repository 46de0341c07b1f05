//! Futex on a word in shared memory: wait and wake.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits while the word has this value. May wake spuriously.
pub(super) fn wait(word: &AtomicU32, value: u32, most: Duration) {
    let most = libc::timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    // SAFETY: the word and the timeout outlive the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const most);
    }
}

/// Wakes one waiter.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
