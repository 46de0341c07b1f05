//! Counter-based random numbers: the n-th number can be computed without its predecessors.

/// Purpose of a random number. Numbers of the same packet for different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Use {
    Loss = 1,
    Burst,
    Duplicate,
    Corrupt,
    Bit,
    Reorder,
    Jitter,
    Discipline,
    Gap,
    On,
    Off,
}

/// Random number generator of one direction of a link. The same seed and name yield the same
/// numbers on every machine, because only integer arithmetic is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dice(u64);

/// 2^64 divided by the golden ratio, rounded to an odd number: the increment of SplitMix64 (Steele,
/// Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Dice {
    /// Creates the generator for the object of this name in a lab with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        let each = |state: u64, byte: u8| mix((state ^ u64::from(byte)).wrapping_add(STEP));
        Self(name.bytes().fold(mix(seed.wrapping_add(STEP)), each))
    }

    /// Returns an independent generator that is equally reproducible.
    pub(crate) fn others(self) -> Self {
        Self(mix(self.0 ^ STEP))
    }

    /// Returns the random number of the n-th packet for this purpose.
    pub(crate) fn roll(self, of: Use, n: u64) -> u64 {
        let stream = mix(self.0 ^ mix((of as u64).wrapping_mul(STEP)));
        mix(stream.wrapping_add(n.wrapping_mul(STEP)))
    }
}

/// SplitMix64's output function.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changing these numbers changes the outcome of every packet in every lab.
    #[test]
    fn random_numbers_never_change() {
        let dice = Dice::new(42, "r1-r2");
        let rolls = [0, 1, 1 << 40].map(|n| dice.roll(Use::Loss, n));
        assert_eq!(
            rolls,
            [5_272_009_325_428_977_613, 3_160_108_715_196_580_011, 14_690_311_512_969_041_489]
        );
    }

    #[test]
    fn other_seeds_names_and_uses_have_other_numbers() {
        let one = Dice::new(1, "a-b").roll(Use::Loss, 0);
        assert_ne!(one, Dice::new(2, "a-b").roll(Use::Loss, 0));
        assert_ne!(one, Dice::new(1, "b-a").roll(Use::Loss, 0));
        assert_ne!(one, Dice::new(1, "a-b").roll(Use::Bit, 0));
    }
}
