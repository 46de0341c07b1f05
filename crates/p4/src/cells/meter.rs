//! Meters of two rates and three colours (RFC 2698).

use super::{of_words, words};

/// A packet's colour: the members of `PSA_MeterColor_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Beyond the peak rate.
    Red = 0,
    /// Within the committed rate.
    Green = 1,
    /// Within the peak rate only.
    Yellow = 2,
}

impl Colour {
    /// The colour of a number; of one that is none, green.
    pub fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Red,
            2 => Self::Yellow,
            _ => Self::Green,
        }
    }
}

/// What a meter is set to. Units are packets or bytes, as the program says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// The committed rate, in units a second.
    pub cir: u64,
    /// The committed burst, in units.
    pub cburst: u64,
    /// The peak rate, in units a second.
    pub pir: u64,
    /// The peak burst, in units.
    pub pburst: u64,
}

/// A bucket of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    /// Whole units.
    tokens: u64,
    /// Billionths of a unit, fewer than a billion.
    rest: u32,
}

/// A meter's cell.
///
/// ```text
///  0  committed rate, committed burst, peak rate, peak burst
/// 32  tokens of the committed bucket, of the peak bucket: whole units
/// 48  billionths of a unit in the committed bucket (u32), in the peak bucket (u32)
/// 56  the last packet's time in ns; the two highest bits: 0 never set, 1 set, 2 in use
/// ```
///
/// Zeros are a meter that was never set, to which nothing is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterCell {
    rates: Rates,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Nothing is too much.
    #[default]
    Unset,
    /// Both buckets are full, and no packet has come.
    Full,
    /// At the last packet's time: the committed bucket, and the peak bucket.
    Used(u64, Bucket, Bucket),
}

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// Where the state is in the last word.
const STATE: u32 = 62;

impl Bucket {
    /// What is in the bucket so many nanoseconds later.
    fn filled(self, elapsed: u64, rate: u64, burst: u64) -> Self {
        // In 128 bits only where 64 are not enough: their division takes its time.
        let small = rate.checked_mul(elapsed).and_then(|all| all.checked_add(self.rest.into()));
        let (more, rest) = match small {
            Some(all) => (all / SECOND, (all % SECOND) as u32),
            None => {
                let all = u128::from(rate) * u128::from(elapsed) + u128::from(self.rest);
                let more = u64::try_from(all / u128::from(SECOND)).unwrap_or(u64::MAX);
                (more, (all % u128::from(SECOND)) as u32)
            }
        };
        let tokens = self.tokens.saturating_add(more);
        if tokens >= burst { Self { tokens: burst, rest: 0 } } else { Self { tokens, rest } }
    }
}

impl MeterCell {
    /// Bytes of a cell.
    pub const SIZE: u32 = 64;

    /// A meter with these rates, its buckets full; without, one to which nothing is too much.
    pub fn set(rates: Option<Rates>) -> Self {
        match rates {
            Some(rates) => Self { rates, state: State::Full },
            None => Self::default(),
        }
    }

    /// What it is set to.
    pub fn rates(&self) -> Option<Rates> {
        (self.state != State::Unset).then_some(self.rates)
    }

    /// The colour of a packet of so many units, at a time in nanoseconds, that has a colour already.
    /// A program that knows no colours begins with green.
    pub fn execute(&mut self, now: u64, units: u64, before: Colour) -> Colour {
        let Rates { cir, cburst, pir, pburst } = self.rates;
        let now = now & ((1 << STATE) - 1);
        let (mut committed, mut peak) = match self.state {
            // As if nothing were too much.
            State::Unset => return before,
            State::Full => (Bucket { tokens: cburst, rest: 0 }, Bucket { tokens: pburst, rest: 0 }),
            State::Used(at, committed, peak) => {
                let elapsed = now.saturating_sub(at);
                (committed.filled(elapsed, cir, cburst), peak.filled(elapsed, pir, pburst))
            }
        };
        let colour = match before {
            _ if peak.tokens < units => Colour::Red,
            Colour::Red => Colour::Red,
            Colour::Yellow => Colour::Yellow,
            Colour::Green if committed.tokens < units => Colour::Yellow,
            Colour::Green => Colour::Green,
        };
        if colour != Colour::Red {
            peak.tokens -= units;
        }
        if colour == Colour::Green {
            committed.tokens -= units;
        }
        self.state = State::Used(now, committed, peak);
        colour
    }

    /// The cell's bytes.
    pub fn to_bytes(self) -> [u8; Self::SIZE as usize] {
        let Rates { cir, cburst, pir, pburst } = self.rates;
        let (state, at, committed, peak) = match self.state {
            State::Unset => (0, 0, Bucket::default(), Bucket::default()),
            State::Full => (1, 0, Bucket::default(), Bucket::default()),
            State::Used(at, committed, peak) => (2, at, committed, peak),
        };
        let rests = u64::from(committed.rest) | u64::from(peak.rest) << 32;
        let time = at | state << STATE;
        words([cir, cburst, pir, pburst, committed.tokens, peak.tokens, rests, time])
    }

    /// The cell of bytes, whoever wrote them; None if they are cut short.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [cir, cburst, pir, pburst, committed, peak, rests, time] = of_words(bytes)?;
        let bucket = |tokens: u64, rest: u64, burst: u64| Bucket {
            tokens: tokens.min(burst),
            rest: (rest & 0xffff_ffff).min(SECOND - 1) as u32,
        };
        let state = match time >> STATE {
            0 => return Some(Self::default()),
            1 => State::Full,
            _ => State::Used(
                time & ((1 << STATE) - 1),
                bucket(committed, rests, cburst),
                bucket(peak, rests >> 32, pburst),
            ),
        };
        Some(Self { rates: Rates { cir, cburst, pir, pburst }, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Colour::{Green, Red, Yellow};

    const MS: u64 = 1_000_000;

    fn meter(cir: u64, cburst: u64, pir: u64, pburst: u64) -> MeterCell {
        MeterCell::set(Some(Rates { cir, cburst, pir, pburst }))
    }

    #[test]
    fn buckets_are_full_at_first_and_fill_with_time() {
        let mut meter = meter(1000, 1500, 2000, 3000);
        // At one time: the committed burst, then what is left of the peak burst.
        let all: Vec<_> = (0..4).map(|_| meter.execute(5, 1000, Green)).collect();
        assert_eq!(all, [Green, Yellow, Yellow, Red]);
        // 500 ms: 500 committed units (and 500 from before), 1000 of the peak rate.
        assert_eq!(meter.execute(5 + 500 * MS, 1000, Green), Green);
        assert_eq!(meter.execute(5 + 500 * MS, 1, Green), Red);
        // A long time fills no more than the bursts.
        assert_eq!(meter.execute(u64::MAX >> 2, 3001, Green), Red);
        assert_eq!(meter.execute(u64::MAX >> 2, 1500, Green), Green);
        assert_eq!(meter.execute(u64::MAX >> 2, 1500, Green), Yellow);
        assert_eq!(meter.execute(u64::MAX >> 2, 1, Green), Red);
    }

    #[test]
    fn colours_are_kept_or_become_worse() {
        let mut meter = meter(1, 10, 1, 30);
        assert_eq!(meter.execute(0, 10, Yellow), Yellow);
        assert_eq!(meter.execute(0, 10, Red), Red, "which takes nothing");
        assert_eq!(meter.execute(0, 10, Green), Green, "the committed burst was left");
        assert_eq!(meter.execute(0, 10, Green), Yellow);
        assert_eq!(meter.execute(0, 10, Green), Red);
    }

    #[test]
    fn nothing_is_too_much_for_what_nobody_has_set() {
        let mut meter = MeterCell::default();
        assert_eq!(meter.execute(1, u64::MAX, Green), Green);
        assert_eq!(meter.execute(1, 1, Red), Red);
        assert_eq!(meter, MeterCell::default());
        assert_eq!(meter.to_bytes(), [0; 64]);
        assert_eq!(meter.rates(), None);
        // Rates of nothing are rates.
        let mut nothing = MeterCell::set(Some(Rates::default()));
        assert_eq!(nothing.execute(1, 1, Green), Red);
        assert_eq!(nothing.execute(1, 0, Green), Green);
    }

    /// Slow rates lose no token to rounding, fast ones none to overflow.
    #[test]
    fn rates_are_exact() {
        let mut slow = meter(7, 1, 7, 1);
        let seconds = 10_u64;
        let step = MS / 3;
        let greens = (0..=seconds * 1000 * MS / step)
            .filter(|at| slow.execute(at * step, 1, Green) == Green)
            .count();
        // The burst, and seven a second, each less than a step late.
        assert!((69..=71).contains(&greens), "{greens}");
        let mut fast = meter(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(fast.execute(0, u64::MAX, Green), Green);
        assert_eq!(fast.execute(0, 1, Green), Red);
        assert_eq!(fast.execute(SECOND, u64::MAX, Green), Green);
    }

    #[test]
    fn time_that_goes_back_gives_nothing() {
        let mut meter = meter(1_000_000_000, 1, 1_000_000_000, 1);
        assert_eq!(meter.execute(100, 1, Green), Green);
        assert_eq!(meter.execute(50, 1, Green), Red);
    }

    #[test]
    fn cells_come_as_they_went() {
        let mut cell = meter(1, 2, 3, 40);
        assert_eq!(MeterCell::from_bytes(&cell.to_bytes()), Some(cell));
        cell.execute(1_234_567, 1, Green);
        cell.execute(2_234_567, 1, Green);
        assert_eq!(MeterCell::from_bytes(&cell.to_bytes()), Some(cell));
        assert_eq!(cell.rates().map(|rates| rates.pburst), Some(40));
        assert_eq!(MeterCell::from_bytes(&[0; 63]), None);
        // Whoever wrote them: no bucket has more than its burst.
        let mut strange = MeterCell::from_bytes(&[0xff; 64]).unwrap();
        assert_eq!(strange.execute(0, 1, Green), Green);
    }
}
