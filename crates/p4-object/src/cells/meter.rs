//! Two-rate three-color meters (RFC 2698).

use super::{of_words, words};

/// Color of a packet, numbered as the members of `PSA_MeterColor_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Above the peak rate.
    Red = 0,
    /// Within the committed rate.
    Green = 1,
    /// Above the committed rate, but within the peak rate.
    Yellow = 2,
}

impl Color {
    /// Returns the color with this number, or green for an invalid number.
    pub fn from_number(number: u64) -> Self {
        match number {
            0 => Self::Red,
            2 => Self::Yellow,
            _ => Self::Green,
        }
    }
}

/// Configuration of a meter. The program determines whether units are packets or bytes.
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

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    /// Whole units.
    tokens: u64,
    /// The fraction of a unit, in billionths.
    rest: u32,
}

/// Cell of a meter.
///
/// ```text
///  0  committed rate, committed burst, peak rate, peak burst
/// 32  tokens of the committed bucket, of the peak bucket: whole units
/// 48  billionths of a unit in the committed bucket (u32) and in the peak bucket (u32)
/// 56  time of the last packet in ns; the two highest bits: 0 unset, 1 set, 2 in use
/// ```
///
/// All zeros is an unset meter, which limits nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterCell {
    rates: Rates,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// The meter has no rates and limits nothing.
    #[default]
    Unset,
    /// Both buckets are full. No packet has arrived yet.
    Full,
    /// Time of the last packet, and the committed and the peak bucket at that time.
    Used(u64, Bucket, Bucket),
}

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// Position of the state bits in the last word.
const STATE: u32 = 62;

impl Bucket {
    /// Returns the bucket after this number of nanoseconds.
    fn filled(self, elapsed: u64, rate: u64, burst: u64) -> Self {
        // Use 128-bit arithmetic only if 64 bits overflow, because its division is slow.
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
    /// Size of a cell in bytes.
    pub const SIZE: u32 = 64;

    /// Creates a meter with these rates and full buckets; without rates, an unset meter.
    pub fn set(rates: Option<Rates>) -> Self {
        match rates {
            Some(rates) => Self { rates, state: State::Full },
            None => Self::default(),
        }
    }

    /// Returns the configured rates; None for an unset meter.
    pub fn rates(&self) -> Option<Rates> {
        (self.state != State::Unset).then_some(self.rates)
    }

    /// Meters a packet of this size in units, at a time in nanoseconds, and returns its color.
    /// `before` is the packet's previous color; a color-blind program passes green.
    pub fn execute(&mut self, now: u64, units: u64, before: Color) -> Color {
        let Rates { cir, cburst, pir, pburst } = self.rates;
        let now = now & ((1 << STATE) - 1);
        let (mut committed, mut peak) = match self.state {
            // An unset meter limits nothing.
            State::Unset => return before,
            State::Full => (Bucket { tokens: cburst, rest: 0 }, Bucket { tokens: pburst, rest: 0 }),
            State::Used(at, committed, peak) => {
                let elapsed = now.saturating_sub(at);
                (committed.filled(elapsed, cir, cburst), peak.filled(elapsed, pir, pburst))
            }
        };
        let color = match before {
            _ if peak.tokens < units => Color::Red,
            Color::Red => Color::Red,
            Color::Yellow => Color::Yellow,
            Color::Green if committed.tokens < units => Color::Yellow,
            Color::Green => Color::Green,
        };
        if color != Color::Red {
            peak.tokens -= units;
        }
        if color == Color::Green {
            committed.tokens -= units;
        }
        self.state = State::Used(now, committed, peak);
        color
    }

    /// Serializes the cell.
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

    /// Deserializes a cell from an untrusted source; None if it is truncated.
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
    use Color::{Green, Red, Yellow};

    const MS: u64 = 1_000_000;

    fn meter(cir: u64, cburst: u64, pir: u64, pburst: u64) -> MeterCell {
        MeterCell::set(Some(Rates { cir, cburst, pir, pburst }))
    }

    #[test]
    fn buckets_are_full_at_first_and_fill_with_time() {
        let mut meter = meter(1000, 1500, 2000, 3000);
        // All at the same time: the committed burst, then the rest of the peak burst.
        let all: Vec<_> = (0..4).map(|_| meter.execute(5, 1000, Green)).collect();
        assert_eq!(all, [Green, Yellow, Yellow, Red]);
        // After 500 ms: 500 committed units plus the 500 left over, and 1000 units of the peak
        // rate.
        assert_eq!(meter.execute(5 + 500 * MS, 1000, Green), Green);
        assert_eq!(meter.execute(5 + 500 * MS, 1, Green), Red);
        // A long pause fills the buckets only up to their bursts.
        assert_eq!(meter.execute(u64::MAX >> 2, 3001, Green), Red);
        assert_eq!(meter.execute(u64::MAX >> 2, 1500, Green), Green);
        assert_eq!(meter.execute(u64::MAX >> 2, 1500, Green), Yellow);
        assert_eq!(meter.execute(u64::MAX >> 2, 1, Green), Red);
    }

    #[test]
    fn colors_are_kept_or_become_worse() {
        let mut meter = meter(1, 10, 1, 30);
        assert_eq!(meter.execute(0, 10, Yellow), Yellow);
        assert_eq!(meter.execute(0, 10, Red), Red, "which takes nothing");
        assert_eq!(meter.execute(0, 10, Green), Green, "the committed burst was left");
        assert_eq!(meter.execute(0, 10, Green), Yellow);
        assert_eq!(meter.execute(0, 10, Green), Red);
    }

    #[test]
    fn an_unconfigured_meter_colors_all_packets_green() {
        let mut meter = MeterCell::default();
        assert_eq!(meter.execute(1, u64::MAX, Green), Green);
        assert_eq!(meter.execute(1, 1, Red), Red);
        assert_eq!(meter, MeterCell::default());
        assert_eq!(meter.to_bytes(), [0; 64]);
        assert_eq!(meter.rates(), None);
        // Rates of zero are still rates.
        let mut nothing = MeterCell::set(Some(Rates::default()));
        assert_eq!(nothing.execute(1, 1, Green), Red);
        assert_eq!(nothing.execute(1, 0, Green), Green);
    }

    /// Slow rates lose no tokens to rounding, fast rates lose none to overflow.
    #[test]
    fn rates_are_exact() {
        let mut slow = meter(7, 1, 7, 1);
        let seconds = 10_u64;
        let step = MS / 3;
        let greens = (0..=seconds * 1000 * MS / step)
            .filter(|at| slow.execute(at * step, 1, Green) == Green)
            .count();
        // The burst plus seven tokens a second, each less than one step late.
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
        // Untrusted bytes: no bucket exceeds its burst.
        let mut strange = MeterCell::from_bytes(&[0xff; 64]).unwrap();
        assert_eq!(strange.execute(0, 1, Green), Green);
    }
}
