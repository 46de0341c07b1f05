//! Sleeping on a word that both sides have, and waking who does.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps as long as the word has this value; may return without a reason.
pub(super) fn wait(word: &AtomicU32, value: u32, most: Duration) {
    let most = libc::timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    // SAFETY: the word and the time are there as long as the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const most);
    }
}

/// Wakes one who sleeps on the word.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the word is there as long as the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
