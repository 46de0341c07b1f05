//! Random early detection (Floyd, Jacobson 1993), gentle.

use super::{Verdict, time_of};
use crate::{Chance, Nanos};

/// From when on packets are dropped, and how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Up to so many bytes on average nothing is dropped.
    pub least: u64,
    /// At so many bytes on average, [`Red::most`] is; at twice as many, everything.
    pub full: u64,
    /// The part of packets that is dropped at [`Red::full`].
    pub most: f64,
    /// How much the last packet's queue counts in the average.
    pub weight: f64,
}

impl Red {
    /// The published recommendations for a queue of so many bytes, which the average is to fill by half
    /// at most.
    pub fn for_limit(bytes: u64) -> Self {
        let full = (bytes / 2).max(3);
        Self { least: full / 3, full, most: 0.1, weight: 0.002 }
    }
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Red,
    average: f64,
    /// Packets since the last that was dropped, while there is a chance.
    since: Option<u32>,
    empty: Option<Nanos>,
}

/// What counts as a packet while nothing comes: the average falls as if empty ones did.
const PACKET: u64 = 1000;

impl State {
    pub(super) fn new(settings: Red) -> Self {
        Self { settings, average: 0.0, since: None, empty: Some(0) }
    }

    pub(super) fn empty_since(&mut self, now: Nanos) {
        self.empty = Some(now);
    }

    /// What becomes of the packet that comes.
    pub(super) fn judge(&mut self, now: Nanos, bytes: u64, bps: u64, roll: u64) -> Verdict {
        let Red { least, full, most, weight } = self.settings;
        match self.empty.take().filter(|_| bytes == 0) {
            Some(since) => {
                let packets = now.saturating_sub(since) / time_of(PACKET, bps).max(1);
                self.average *= libm::pow(1.0 - weight, packets as f64);
            }
            None => self.average += weight * (bytes as f64 - self.average),
        }
        let (least, full) = (least as f64, full as f64);
        let chance = if self.average < least {
            self.since = None;
            return Verdict::Pass;
        } else if self.average < full {
            most * (self.average - least) / (full - least)
        } else {
            (most + (1.0 - most) * (self.average - full) / full).min(1.0)
        };
        // Drops are spread evenly: the longer the last is ago, the likelier the next.
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        let left = 1.0 - f64::from(since) * chance;
        let drops = left <= 0.0 || Chance::of(chance / left).happens(roll);
        self.since = Some(if drops { 0 } else { since });
        match drops {
            false => Verdict::Pass,
            // Who is as late as that does not heed marks (RFC 3168 section 7).
            true if chance >= 1.0 => Verdict::Drop,
            true => Verdict::Tell,
        }
    }
}
