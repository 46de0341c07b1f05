//! What time it is.

use std::time::Duration;

use emulator::Nanos;
use nix::time::{ClockId, clock_gettime};

/// The machine's time since it started: no one sets it.
pub(crate) fn now() -> Nanos {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Both clocks are read in less.
const TOGETHER: Nanos = 500;

/// When something was, of which the kernel says the time of day. Both clocks are read together, so that
/// setting the time of day is no more than one batch's trouble.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Translation {
    now: Nanos,
    time_of_day: Nanos,
}

impl Translation {
    pub(crate) fn read() -> Self {
        let mut best = Self::once();
        // Whoever is interrupted between the two looks again: by as much the moments of packets are wrong.
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

    /// And how long it took.
    fn once() -> (Self, Nanos) {
        let before = now();
        let time_of_day = read(ClockId::CLOCK_REALTIME);
        let now = now();
        (Self { now, time_of_day }, now - before)
    }

    /// On the clock of [`now`]; never later than that.
    pub(crate) fn of(&self, time_of_day: Nanos) -> Nanos {
        self.now.saturating_sub(self.time_of_day.saturating_sub(time_of_day))
    }
}

fn read(clock: ClockId) -> Nanos {
    // These two clocks are always there.
    clock_gettime(clock).map_or(0, |time| Duration::from(time).as_nanos() as Nanos)
}
