//! Recorded schedules: link parameters that change over time.

use std::sync::Arc;

use crate::{Loss, Nanos, Rate, Settings};

/// Link parameters from a point in time on. Absent values are those of the link's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Start time, relative to the start of the schedule.
    pub at: Nanos,
    /// Propagation delay.
    pub delay: Option<Nanos>,
    /// Packet loss.
    pub loss: Option<Loss>,
    /// Layer-2 rate in bits per second, possibly 0.
    pub rate: Option<u64>,
}

/// A schedule: entries ordered by time.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    moments: Arc<[Moment]>,
    period: Option<Nanos>,
}

impl Course {
    /// Creates a schedule from its entries and an optional period after which it repeats. The
    /// period is at least one nanosecond longer than the start of the last entry. Without a period
    /// the last entry remains in effect for ever.
    pub fn new(mut moments: Vec<Moment>, period: Option<Nanos>) -> Self {
        moments.sort_by_key(|moment| moment.at);
        let last = moments.last().map_or(0, |last| last.at);
        Self { moments: moments.into(), period: period.map(|period| period.max(last + 1)) }
    }

    /// Returns true if any entry sets a delay.
    pub fn has_delays(&self) -> bool {
        self.moments.iter().any(|moment| moment.delay.is_some())
    }

    /// Returns true if any entry sets a loss.
    pub fn has_losses(&self) -> bool {
        self.moments.iter().any(|moment| moment.loss.is_some())
    }

    /// Returns the highest rate of all entries, if any entry sets one.
    pub fn most_bps(&self) -> Option<u64> {
        self.moments.iter().filter_map(|moment| moment.rate).max()
    }

    /// Returns the entry in effect at a time since the start, and the time of the next change.
    fn look(&self, time: Nanos) -> (Option<&Moment>, Option<Nanos>) {
        let begin = self.period.map_or(0, |period| time / period * period);
        let place = self.moments.partition_point(|moment| moment.at <= time - begin);
        let now = place.checked_sub(1).map(|now| &self.moments[now]);
        let next = self.moments.get(place).map(|moment| moment.at).or(self.period);
        (now, next.map(|next| begin.saturating_add(next)))
    }

    /// Returns the effective settings of a link at a time since the start, and the time of the next
    /// change.
    pub(crate) fn apply(&self, settings: &Settings, time: Nanos) -> (Settings, Option<Nanos>) {
        let (moment, next) = self.look(time);
        let mut now = settings.clone();
        if let Some(moment) = moment {
            let impairments = &mut now.impairments;
            impairments.delay = moment.delay.unwrap_or(impairments.delay);
            impairments.loss = moment.loss.unwrap_or(impairments.loss);
            now.rate = moment.rate.map_or(now.rate, Rate::Constant);
        }
        (now, next)
    }
}
