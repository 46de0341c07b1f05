//! What a link does over time, as somebody recorded it.

use std::sync::Arc;

use crate::{Loss, Nanos, Rate, Settings};

/// What a link does from a moment on; what is not given is as its settings say.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// From when on, counted from the course's beginning.
    pub at: Nanos,
    /// How long packets are on their way.
    pub delay: Option<Nanos>,
    /// Which packets are lost.
    pub loss: Option<Loss>,
    /// Bits of layer 2 per second, perhaps none.
    pub rate: Option<u64>,
}

/// Moments in the order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    moments: Arc<[Moment]>,
    period: Option<Nanos>,
}

impl Course {
    /// The moments in their order, and when they begin again: later than the last of them. Without that,
    /// the last is for ever.
    pub fn new(mut moments: Vec<Moment>, period: Option<Nanos>) -> Self {
        moments.sort_by_key(|moment| moment.at);
        let last = moments.last().map_or(0, |last| last.at);
        Self { moments: moments.into(), period: period.map(|period| period.max(last + 1)) }
    }

    /// Whether it says how long packets are on their way.
    pub fn has_delays(&self) -> bool {
        self.moments.iter().any(|moment| moment.delay.is_some())
    }

    /// Whether it says which packets are lost.
    pub fn has_losses(&self) -> bool {
        self.moments.iter().any(|moment| moment.loss.is_some())
    }

    /// The fastest of its rates, if it has any.
    pub fn most_bps(&self) -> Option<u64> {
        self.moments.iter().filter_map(|moment| moment.rate).max()
    }

    /// What holds at a time since its beginning, and when that changes.
    fn look(&self, time: Nanos) -> (Option<&Moment>, Option<Nanos>) {
        let begin = self.period.map_or(0, |period| time / period * period);
        let place = self.moments.partition_point(|moment| moment.at <= time - begin);
        let now = place.checked_sub(1).map(|now| &self.moments[now]);
        let next = self.moments.get(place).map(|moment| moment.at).or(self.period);
        (now, next.map(|next| begin.saturating_add(next)))
    }

    /// What a link with these settings does at a time since the beginning, and when that changes.
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
