//! The proportional integral controller, enhanced (RFC 8033).

use super::{Verdict, time_of};
use crate::{Chance, Nanos};

/// How long packets may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pie {
    /// So long is good (`QDELAY_REF`, RFC 8033 section 4.2).
    pub target: Nanos,
    /// How often the chance of a drop changes (`T_UPDATE`).
    pub every: Nanos,
    /// For so long a burst drops nothing (`MAX_BURST`).
    pub burst: Nanos,
}

impl Default for Pie {
    fn default() -> Self {
        Self { target: 15_000_000, every: 15_000_000, burst: 150_000_000 }
    }
}

/// `alpha` and `beta`, in Hz.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// What a queue of so many bytes holds back is not worth a drop (two full packets, section 4.1).
const SMALL: u64 = 2 * 1514;
/// More intervals than these in a row are not looked at one by one: by then the chance is zero.
const MOST: Nanos = 1000;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Pie,
    chance: f64,
    delay_before: Nanos,
    burst_left: Nanos,
    /// When the chance was last due to change; none before the first packet.
    updated: Option<Nanos>,
}

impl State {
    pub(super) fn new(settings: Pie) -> Self {
        Self { settings, chance: 0.0, delay_before: 0, burst_left: settings.burst, updated: None }
    }

    /// What becomes of the packet that comes (section 4.1).
    pub(super) fn judge(&mut self, now: Nanos, queued: u64, bps: u64, roll: u64) -> Verdict {
        let delay = time_of(queued, bps);
        let every = self.settings.every.max(1);
        let updated = *self.updated.get_or_insert(now);
        let missed = now.saturating_sub(updated) / every;
        for _ in 0..missed.min(MOST) {
            self.update(delay);
        }
        self.updated = Some(updated + missed * every);
        if self.burst_left > 0 {
            return Verdict::Pass;
        }
        let is_short = self.delay_before < self.settings.target / 2 && self.chance < 0.2;
        if is_short || queued <= SMALL {
            return Verdict::Pass;
        }
        match Chance::of(self.chance).happens(roll) {
            false => Verdict::Pass,
            // Marks help while few are needed (section 5.1).
            true if self.chance < 0.1 => Verdict::Tell,
            true => Verdict::Drop,
        }
    }

    /// Every `T_UPDATE` (section 4.2), with the bursts of section 4.4.
    fn update(&mut self, delay: Nanos) {
        let Pie { target, every, burst } = self.settings;
        let seconds = |time: Nanos| time as f64 / 1e9;
        let error = seconds(delay) - seconds(target);
        let trend = seconds(delay) - seconds(self.delay_before);
        let mut change = ALPHA * error + BETA * trend;
        // Small chances change in small steps.
        let steps = [
            (0.000_001, 2048.0),
            (0.000_01, 512.0),
            (0.000_1, 128.0),
            (0.001, 32.0),
            (0.01, 8.0),
            (0.1, 2.0),
        ];
        let step = steps.iter().find(|(below, _)| self.chance < *below);
        change /= step.map_or(1.0, |(_, divisor)| *divisor);
        // Nor do large ones jump.
        if self.chance >= 0.1 {
            change = change.min(0.02);
        }
        self.chance += change;
        if delay == 0 && self.delay_before == 0 {
            self.chance *= 0.98;
        }
        self.chance = self.chance.clamp(0.0, 1.0);
        self.burst_left = self.burst_left.saturating_sub(every);
        if self.chance == 0.0 && delay < target / 2 && self.delay_before < target / 2 {
            self.burst_left = burst;
        }
        self.delay_before = delay;
    }
}
