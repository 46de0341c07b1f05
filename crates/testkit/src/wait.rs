//! Polling for a condition.

use std::time::{Duration, Instant};

/// Polls `what` until it returns a value. After `limit`, panics with the message from `missing`.
pub fn until<T>(
    limit: Duration,
    mut what: impl FnMut() -> Option<T>,
    missing: impl FnOnce() -> String,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = what() {
            return value;
        }
        assert!(started.elapsed() < limit, "not within {limit:?}: {}", missing());
        pause(Duration::from_millis(20));
    }
}

/// Sleeps, between two polls or until a random time.
#[expect(clippy::disallowed_methods, reason = "the kernel and the daemons announce nothing here")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Sets a flag when it is dropped, also by a panic, so that threads which wait for it end.
#[derive(Debug)]
pub struct SetOnDrop<'f>(pub &'f std::sync::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}
