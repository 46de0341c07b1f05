//! Proportional integral controller enhanced (RFC 8033).

use super::{Verdict, time_of};
use crate::{Chance, Nanos};

/// PIE parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pie {
    /// Target queue delay (`QDELAY_REF`, RFC 8033 section 4.2).
    pub target: Nanos,
    /// Update interval of the drop probability (`T_UPDATE`).
    pub every: Nanos,
    /// Burst allowance, during which no packet is dropped (`MAX_BURST`).
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
/// Backlog in bytes below which no packet is dropped (two full-sized packets, section 4.1).
const SMALL: u64 = 2 * 1514;
/// Maximum number of missed updates to catch up: after that many the probability is zero.
const MAX: Nanos = 1000;

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Pie,
    chance: f64,
    delay_before: Nanos,
    burst_left: Nanos,
    /// Time of the last update of the drop probability; `None` before the first packet.
    updated: Option<Nanos>,
}

impl State {
    pub(super) fn new(settings: Pie) -> Self {
        Self { settings, chance: 0.0, delay_before: 0, burst_left: settings.burst, updated: None }
    }

    /// Decides about an arriving packet (section 4.1).
    pub(super) fn judge(&mut self, now: Nanos, queued: u64, bps: u64, roll: u64) -> Verdict {
        let delay = time_of(queued, bps);
        let every = self.settings.every.max(1);
        let updated = *self.updated.get_or_insert(now);
        let missed = now.saturating_sub(updated) / every;
        for _ in 0..missed.min(MAX) {
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
        match Chance::new(self.chance).happens(roll) {
            false => Verdict::Pass,
            // Marking suffices while the probability is low (section 5.1).
            true if self.chance < 0.1 => Verdict::Tell,
            true => Verdict::Drop,
        }
    }

    /// Updates the drop probability, every `T_UPDATE` (section 4.2), and the burst allowance of
    /// section 4.4.
    fn update(&mut self, delay: Nanos) {
        let Pie { target, every, burst } = self.settings;
        let seconds = |time: Nanos| time as f64 / 1e9;
        let error = seconds(delay) - seconds(target);
        let trend = seconds(delay) - seconds(self.delay_before);
        let mut change = ALPHA * error + BETA * trend;
        // Scale the change down while the probability is small.
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
        // Limit the increase while the probability is large.
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
