//! Durations of measurements.

use std::time::Duration;

/// Sleeps for the duration of a measurement, or between packets and polls.
#[expect(
    clippy::disallowed_methods,
    reason = "a measurement takes its time, and counters and other programs have no event"
)]
pub(crate) fn wait_for(duration: Duration) {
    std::thread::sleep(duration);
}
