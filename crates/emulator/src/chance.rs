//! How likely something is.

/// A probability, from 0 to 1 in steps of 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Chance(u128);

/// Certainty: one more than the largest roll.
const CERTAIN: u128 = 1 << 64;

impl Chance {
    /// What never happens.
    pub const NEVER: Self = Self(0);
    /// What always happens.
    pub const ALWAYS: Self = Self(CERTAIN);

    /// A part of one; what is below 0 is 0, what is above 1 is 1, and what is no number is 0.
    pub fn of(part: f64) -> Self {
        // Two factors, each exact; the conversion saturates.
        Self(((part * 4_294_967_296.0 * 4_294_967_296.0) as u128).min(CERTAIN))
    }

    /// As a part of one.
    pub fn part(self) -> f64 {
        self.0 as f64 / CERTAIN as f64
    }

    /// Whether it happens, given a random number.
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
            assert_eq!(Chance::of(part), chance);
        }
        assert_eq!(Chance::of(-1.0), Chance::NEVER);
        assert_eq!(Chance::of(f64::NAN), Chance::NEVER);
        assert!(!Chance::NEVER.happens(0) && Chance::ALWAYS.happens(u64::MAX));
        let half = Chance::of(0.5);
        assert!(half.happens((1 << 63) - 1) && !half.happens(1 << 63));
        assert_eq!(half.part(), 0.5);
    }
}
