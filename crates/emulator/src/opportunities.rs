//! Recorded rates: a trace of the times at which a packet can be sent.

use std::fmt;
use std::sync::Arc;

use crate::Nanos;

const MILLISECOND: Nanos = 1_000_000;

/// A trace in mahimahi's format (Netravali et al.: Mahimahi, 2015), repeated periodically. At each
/// opportunity the link can send `bytes` bytes. Unused capacity is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunities {
    /// Times of the opportunities, ascending. The last one is the period.
    times: Arc<[Nanos]>,
    /// Capacity of each opportunity in bytes.
    bytes: u32,
}

/// Error in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadTrace {
    /// The trace has no lines.
    Empty,
    /// A line (counted from 1) is not a number of milliseconds.
    NoNumber(usize),
    /// A line (counted from 1) is earlier than its predecessor.
    Backwards(usize),
    /// The trace ends at 0, so its period is zero.
    NoTime,
}

impl BadTrace {
    /// Returns the number of the invalid line, counted from 1, or `None` if the end is wrong.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Empty => Some(1),
            Self::NoNumber(line) | Self::Backwards(line) => Some(*line),
            Self::NoTime => None,
        }
    }
}

impl fmt::Display for BadTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => {
                f.write_str("it is empty: write a line with the milliseconds of each packet")
            }
            Self::NoNumber(line) => write!(f, "line {line} is not a whole number of milliseconds"),
            Self::Backwards(line) => write!(f, "line {line} is earlier than the line before it"),
            Self::NoTime => f.write_str("it ends at 0 ms: the last line is when it begins again"),
        }
    }
}

impl std::error::Error for BadTrace {}

/// Position in a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Number of the opportunity, counted over all periods.
    pub(crate) number: u64,
    /// Bytes of this opportunity already used.
    pub(crate) used: u32,
}

impl Opportunities {
    /// Parses a trace. Each line is a time in milliseconds at which `bytes` bytes can be sent.
    pub fn parse(text: &str, bytes: u32) -> Result<Self, BadTrace> {
        let mut times = Vec::new();
        for (line, at) in text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty())
        {
            let milliseconds: u32 = line.parse().map_err(|_| BadTrace::NoNumber(at))?;
            let time = Nanos::from(milliseconds) * MILLISECOND;
            if times.last().is_some_and(|before| *before > time) {
                return Err(BadTrace::Backwards(at));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(BadTrace::Empty),
            Some(0) => Err(BadTrace::NoTime),
            Some(_) => Ok(Self { times: times.into(), bytes: bytes.max(1) }),
        }
    }

    /// Returns the same trace with another capacity per opportunity.
    pub fn with_bytes(&self, bytes: u32) -> Self {
        Self { times: Arc::clone(&self.times), bytes: bytes.max(1) }
    }

    /// Returns the period.
    pub fn period(&self) -> Nanos {
        self.times[self.times.len() - 1]
    }

    /// Returns the mean rate in bits per second.
    pub fn mean_bps(&self) -> u64 {
        let bits = self.times.len() as u128 * u128::from(self.bytes) * 8;
        (bits * 1_000_000_000 / u128::from(self.period())) as u64
    }

    /// Returns the time at which a packet of `length` bytes, now at the head of the queue, has been
    /// sent.
    pub(crate) fn send(&self, place: &mut Place, now: Nanos, length: u32) -> Nanos {
        let first = self.first_from(now);
        if place.number < first {
            *place = Place { number: first, used: 0 };
        }
        let mut left = length;
        loop {
            // A position from a capture may have any values.
            let part = left.min(self.bytes.saturating_sub(place.used));
            left -= part;
            place.used += part;
            if left == 0 {
                return self.time(place.number);
            }
            *place = Place { number: place.number.saturating_add(1), used: 0 };
        }
    }

    fn time(&self, number: u64) -> Nanos {
        let count = self.times.len() as u64;
        let round = (number / count).saturating_mul(self.period());
        round.saturating_add(self.times[(number % count) as usize])
    }

    /// Returns the first opportunity that is not before `now`.
    fn first_from(&self, now: Nanos) -> u64 {
        let (period, count) = (self.period(), self.times.len() as u64);
        // The end of a period is also the start of the next one.
        let round = now.saturating_sub(1) / period;
        let within = now - round * period;
        round * count + self.times.partition_point(|time| *time < within) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Opportunities {
        Opportunities::parse(text, 1500).unwrap()
    }

    #[test]
    fn bytes_leave_when_there_is_an_opportunity() {
        let trace = trace("1\n1\n5\n");
        let mut place = Place::default();
        let mut send =
            |now, length| trace.send(&mut place, now * MILLISECOND, length) / MILLISECOND;
        // Two opportunities at 1 ms; the second one carries two small packets.
        assert_eq!([send(0, 1500), send(0, 700), send(0, 800), send(0, 100)], [1, 1, 1, 5]);
        // The next packet uses the rest of an opportunity.
        assert_eq!(send(2, 1500), 6);
        // No packet was queued at the second opportunity of 6 ms, nor at 10 ms.
        assert_eq!(send(11, 1), 11);
        assert_eq!(trace.mean_bps(), 3 * 1500 * 8 * 200);
    }

    #[test]
    fn the_end_of_a_period_is_the_beginning_of_the_next() {
        let trace = trace("0\n10");
        let mut place = Place::default();
        let sent: Vec<_> = (0..5).map(|_| trace.send(&mut place, 0, 1500) / MILLISECOND).collect();
        assert_eq!(sent, [0, 10, 10, 20, 20]);
        assert_eq!(trace.send(&mut Place::default(), 10 * MILLISECOND, 1500), 10 * MILLISECOND);
    }

    #[test]
    fn bad_traces_say_where() {
        let bad = |text| Opportunities::parse(text, 1500).unwrap_err();
        assert_eq!(bad(" \n\n"), BadTrace::Empty);
        assert_eq!(bad("1\nx"), BadTrace::NoNumber(2));
        assert_eq!(bad("1\n\n-2"), BadTrace::NoNumber(3));
        assert_eq!(bad("5\n4"), BadTrace::Backwards(2));
        assert_eq!(bad("0\n0"), BadTrace::NoTime);
        assert_eq!(bad("99999999999999"), BadTrace::NoNumber(1));
    }
}
