//! How late timers are here.

use emulator::Nanos;

/// Sleeping until shortly before a moment, and looking at the clock for what is left. Sleeps are too long by
/// what the processor takes to wake, and the longer they are, the deeper it sleeps. So it is learnt, of
/// short sleeps and of long ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timers {
    late: [Nanos; 2],
    most: Nanos,
}

/// From here on a time is long.
const LONG: Nanos = 1_000_000;
/// How much earlier it wakes than what it has learnt says.
const MARGIN: Nanos = 20_000;

impl Timers {
    /// Nothing is known. `most`: how long to look at the clock at most.
    pub(crate) fn new(most: Nanos) -> Self {
        Self { late: [most; 2], most }
    }

    /// How long to sleep when so much time is left.
    pub(crate) fn sleep(&self, left: Nanos) -> Nanos {
        let late = self.late[usize::from(left >= LONG)];
        left.saturating_sub((late + MARGIN).min(self.most))
    }

    /// It slept when so much time was left, and so much longer than it was to. What is learnt is the
    /// latest, and forgotten in some tens of sleeps.
    pub(crate) fn learn(&mut self, left: Nanos, late: Nanos) {
        let known = &mut self.late[usize::from(left >= LONG)];
        *known = late.min(self.most).max(*known - *known / 16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_before_their_moment_by_what_they_were_late() {
        let mut timers = Timers::new(300_000);
        // At first as early as it may.
        assert_eq!(timers.sleep(10_000_000), 9_700_000);
        for _ in 0..100 {
            timers.learn(10_000_000, 100_000);
            timers.learn(200_000, 15_000);
        }
        assert_eq!(timers.sleep(10_000_000), 9_880_000);
        assert_eq!(timers.sleep(200_000), 165_000);
        assert_eq!(timers.sleep(30_000), 0);
        // One pause of the machine does not stay.
        timers.learn(200_000, 5_000_000);
        assert_eq!(timers.sleep(400_000), 100_000);
        for _ in 0..100 {
            timers.learn(200_000, 15_000);
        }
        assert_eq!(timers.sleep(200_000), 165_000);
    }
}
