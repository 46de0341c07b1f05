//! Clocks.

use std::time::Duration;

use emulator::Nanos;
use nix::time::{ClockId, clock_gettime};

/// Returns the monotonic time since boot, which cannot be set.
pub(crate) fn now() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Maximum time in ns for reading both clocks.
const TOGETHER: Nanos = 500;

/// Converts kernel timestamps from CLOCK_REALTIME to CLOCK_MONOTONIC. Both clocks are read together
/// for each batch, so that a change of the wall clock affects one batch at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Translation {
    now: Nanos,
    time_of_day: Nanos,
}

impl Translation {
    pub(crate) fn read() -> Self {
        let mut best = Self::once();
        // Retry after an interruption between the two reads: its duration is the error of the
        // timestamps.
        for _ in 0..3 {
            if best.1 <= TOGETHER {
                break;
            }
            let other = Self::once();
            if other.1 < best.1 {
                best = other;
            }
        }
        best.0
    }

    /// Reads both clocks once. Also returns the time that this took.
    fn once() -> (Self, Nanos) {
        let before = now();
        let time_of_day = read(ClockId::CLOCK_REALTIME);
        let now = now();
        (Self { now, time_of_day }, now - before)
    }

    /// Converts a timestamp to the clock of [`now`]. The result is never later than the time of the
    /// reading.
    pub(crate) fn of(&self, time_of_day: Nanos) -> Nanos {
        self.now.saturating_sub(self.time_of_day.saturating_sub(time_of_day))
    }
}

fn read(clock: ClockId) -> Nanos {
    // These two clocks always exist.
    clock_gettime(clock).map_or(0, |time| Duration::from(time).as_nanos() as Nanos)
}
