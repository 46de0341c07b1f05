//! Lateness of sent packets.

use emulator::Nanos;

/// Number of histogram buckets in [`Lateness`]: up to 1 µs, 2 µs, 4 µs, ... 2^20 µs, and above.
pub(crate) const STEPS: usize = 22;

/// Delay between the scheduled departure of packets and their transmission to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Packets that were late by at most 1 µs, at most 2 µs, and so on. The last bucket contains
    /// those that were late by more than a second.
    pub steps: [u64; STEPS],
    /// Sum of all delays.
    pub sum: u128,
    /// Maximum delay.
    pub max: Nanos,
}

impl Lateness {
    /// Counts a packet.
    pub(crate) fn add(&mut self, late: Nanos) {
        self.steps[step_of(late)] += 1;
        self.sum += u128::from(late);
        self.max = self.max.max(late);
    }
}

/// Returns the index of the smallest bucket that includes the delay.
fn step_of(late: Nanos) -> usize {
    let microseconds = late.div_ceil(1000).max(1);
    ((microseconds - 1).checked_ilog2().map_or(0, |log| log + 1) as usize).min(STEPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_first_step_that_has_room() {
        for (late, step) in
            [(0, 0), (1000, 0), (1001, 1), (2000, 1), (2001, 2), (4000, 2), (4001, 3)]
        {
            assert_eq!(step_of(late), step, "{late}");
        }
        let second = 1000 << 20;
        assert_eq!((step_of(second), step_of(second + 1)), (STEPS - 2, STEPS - 1));
        assert_eq!(step_of(Nanos::MAX), STEPS - 1);
        let mut lateness = Lateness::default();
        [0, 1500, 700].into_iter().for_each(|late| lateness.add(late));
        assert_eq!(
            (&lateness.steps[..3], lateness.sum, lateness.max),
            (&[2, 1, 0][..], 2200, 1500)
        );
    }
}
