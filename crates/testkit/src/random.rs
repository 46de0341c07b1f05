//! Seeded random numbers.

/// SplitMix64: the same seed yields the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Seeds from `$KAIDO_SEED` or the clock. Prints the seed, which reproduces a failed run.
    pub fn seeded() -> Self {
        let given = std::env::var("KAIDO_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            now.as_nanos() as u64
        });
        eprintln!("KAIDO_SEED={seed}");
        Self(seed)
    }

    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Returns a fraction in 0..1.
    pub fn fraction(&mut self) -> f64 {
        // An f64 represents 53 bits exactly.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.bits()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut random = Random::new(3);
        let fractions: Vec<f64> = (0..1000).map(|_| random.fraction()).collect();
        assert!(fractions.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = fractions.iter().sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }
}
