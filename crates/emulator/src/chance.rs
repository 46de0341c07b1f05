//! Probabilities.

/// A probability, from 0 to 1 in steps of 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Chance(u128);

/// Certainty: one more than the largest random number.
const CERTAIN: u128 = 1 << 64;

impl Chance {
    /// Probability 0: never.
    pub const NEVER: Self = Self(0);
    /// Probability 1: always.
    pub const ALWAYS: Self = Self(CERTAIN);

    /// Creates a probability from a fraction. Values are clamped to 0..=1, and NaN becomes 0.
    pub fn new(part: f64) -> Self {
        // Two factors, each exact; the conversion saturates.
        Self(((part * 4_294_967_296.0 * 4_294_967_296.0) as u128).min(CERTAIN))
    }

    /// Returns the probability as a fraction.
    pub fn part(self) -> f64 {
        self.0 as f64 / CERTAIN as f64
    }

    /// Returns true if the event occurs, given a random number.
    pub(crate) fn happens(self, roll: u64) -> bool {
        u128::from(roll) < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_exact() {
        for (part, chance) in [(0.0, Chance::NEVER), (1.0, Chance::ALWAYS), (2.0, Chance::ALWAYS)] {
            assert_eq!(Chance::new(part), chance);
        }
        assert_eq!(Chance::new(-1.0), Chance::NEVER);
        assert_eq!(Chance::new(f64::NAN), Chance::NEVER);
        assert!(!Chance::NEVER.happens(0) && Chance::ALWAYS.happens(u64::MAX));
        let half = Chance::new(0.5);
        assert!(half.happens((1 << 63) - 1) && !half.happens(1 << 63));
        assert_eq!(half.part(), 0.5);
    }
}
