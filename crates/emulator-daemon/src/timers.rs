//! Timer latency on this machine.

use emulator::Nanos;

/// Adaptive sleep: sleeps until shortly before a deadline and leaves the rest to polling. A sleep
/// is prolonged by the wakeup latency of the CPU, which increases with the depth of its idle
/// state and so with the length of the sleep. The latency is measured for short and long sleeps
/// separately.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timers {
    late: [Nanos; 2],
    most: Nanos,
}

/// Minimum length of a long sleep.
const LONG: Nanos = 1_000_000;
/// Safety margin in addition to the measured latency.
const MARGIN: Nanos = 20_000;

impl Timers {
    /// Starts with the maximum latency. `most` limits the polling time.
    pub(crate) fn new(most: Nanos) -> Self {
        Self { late: [most; 2], most }
    }

    /// Returns the time to sleep if the deadline is `left` away.
    pub(crate) fn sleep(&self, left: Nanos) -> Nanos {
        let late = self.late[usize::from(left >= LONG)];
        left.saturating_sub((late + MARGIN).min(self.most))
    }

    /// Records that a sleep, begun `left` before its deadline, ended `late` after it. The estimate
    /// is the maximum latency, which decays over some tens of sleeps.
    pub(crate) fn record(&mut self, left: Nanos, late: Nanos) {
        let estimate = &mut self.late[usize::from(left >= LONG)];
        *estimate = late.min(self.most).max(*estimate - *estimate / 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_earlier_by_the_measured_delay() {
        let mut timers = Timers::new(300_000);
        // The first sleep is as short as the limit permits.
        assert_eq!(timers.sleep(10_000_000), 9_700_000);
        for _ in 0..100 {
            timers.record(10_000_000, 100_000);
            timers.record(200_000, 15_000);
        }
        assert_eq!(timers.sleep(10_000_000), 9_880_000);
        assert_eq!(timers.sleep(200_000), 165_000);
        assert_eq!(timers.sleep(30_000), 0);
        // A single stall of the machine does not persist.
        timers.record(200_000, 5_000_000);
        assert_eq!(timers.sleep(400_000), 100_000);
        for _ in 0..100 {
            timers.record(200_000, 15_000);
        }
        assert_eq!(timers.sleep(200_000), 165_000);
    }
}
