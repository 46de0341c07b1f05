//! Random early detection (Floyd, Jacobson 1993), gentle variant.

use super::{Verdict, time_of};
use crate::{Chance, Nanos};

/// RED parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Minimum threshold of the average backlog in bytes, below which no packet is dropped.
    pub least: u64,
    /// Maximum threshold in bytes, at which the drop probability is [`Red::most`]. It reaches 1 at
    /// twice this threshold.
    pub full: u64,
    /// Drop probability at [`Red::full`].
    pub most: f64,
    /// Weight of the present backlog in the moving average.
    pub weight: f64,
}

impl Red {
    /// Returns the published recommendations for a queue limit in bytes. The average is to fill at
    /// most half of it.
    pub fn for_limit(bytes: u64) -> Self {
        let full = (bytes / 2).max(3);
        Self { least: full / 3, full, most: 0.1, weight: 0.002 }
    }
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Red,
    average: f64,
    /// Packets since the last drop, while the drop probability is not zero.
    since: Option<u32>,
    empty: Option<Nanos>,
}

/// Packet size that ages the average while the queue is idle, as if packets found it empty.
const PACKET: u64 = 1000;

impl State {
    pub(super) fn new(settings: Red) -> Self {
        Self { settings, average: 0.0, since: None, empty: Some(0) }
    }

    pub(super) fn empty_since(&mut self, now: Nanos) {
        self.empty = Some(now);
    }

    /// Decides about an arriving packet.
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
        // Space drops evenly: the longer since the last drop, the likelier the next one.
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        let left = 1.0 - f64::from(since) * chance;
        let drops = left <= 0.0 || Chance::new(chance / left).happens(roll);
        self.since = Some(if drops { 0 } else { since });
        match drops {
            false => Verdict::Pass,
            // A sender that causes such a backlog does not respond to marks (RFC 3168 section 7).
            true if chance >= 1.0 => Verdict::Drop,
            true => Verdict::Tell,
        }
    }
}
