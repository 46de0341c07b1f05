//! Waiting for what must come.

use std::time::{Duration, Instant};

/// Asks `what` until it has a value. After `limit` the last word is `missing`'s, as a panic.
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

/// Lets time pass: between two looks, or up to a moment that was drawn.
#[expect(clippy::disallowed_methods, reason = "the kernel and the daemons announce nothing here")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
