//! Controlled delay (RFC 8289).

use super::{Mark, Queue, Waiting};
use crate::Nanos;

/// CoDel parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Target queue delay (RFC 8289 section 4.4).
    pub target: Nanos,
    /// Interval for which the delay may exceed the target, to permit bursts (section 4.3).
    pub interval: Nanos,
    /// Backlog in bytes below which no packet is dropped: one packet is not a standing queue.
    pub packet: u32,
}

impl Default for CoDel {
    fn default() -> Self {
        Self { target: 5_000_000, interval: 100_000_000, packet: 1514 }
    }
}

/// State variables of RFC 8289 section 5.2, with their names in the RFC.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: CoDel,
    /// `first_above_time_`: the time at which the delay will have exceeded the target for an
    /// interval.
    above_until: Option<Nanos>,
    /// `dropping_`.
    is_dropping: bool,
    /// `drop_next_`.
    next: Nanos,
    /// `count_`: drops since the dropping state was entered.
    count: u32,
    /// `lastcount_`.
    last_count: u32,
}

impl State {
    pub(super) fn new(settings: CoDel) -> Self {
        Self { settings, above_until: None, is_dropping: false, next: 0, count: 0, last_count: 0 }
    }

    /// `dodequeue`: returns the next packet, and true if the delay has exceeded the target for an
    /// interval.
    fn look<P: Mark>(&mut self, now: Nanos, queue: &mut Queue<P>) -> (Option<Waiting<P>>, bool) {
        let Some(packet) = queue.pop() else {
            self.above_until = None;
            return (None, false);
        };
        let waited = now.saturating_sub(packet.since);
        if waited < self.settings.target || queue.bytes <= u64::from(self.settings.packet) {
            self.above_until = None;
            return (Some(packet), false);
        }
        let until = *self.above_until.get_or_insert(now.saturating_add(self.settings.interval));
        (Some(packet), now >= until)
    }

    /// `control_law`: the drop interval shrinks with the square root of the number of drops.
    fn after(&self, since: Nanos) -> Nanos {
        let pause = self.settings.interval as f64 / f64::from(self.count.max(1)).sqrt();
        since.saturating_add(pause as Nanos)
    }

    /// `dequeue`.
    pub(super) fn take<P: Mark>(
        &mut self,
        now: Nanos,
        queue: &mut Queue<P>,
        dropped: &mut Vec<P>,
    ) -> Option<Waiting<P>> {
        let (mut packet, mut is_late) = self.look(now, queue);
        if self.is_dropping {
            self.is_dropping = is_late;
            while self.is_dropping && now >= self.next {
                self.count = self.count.saturating_add(1);
                if packet.as_mut().is_some_and(|waiting| queue.marks(&mut waiting.packet)) {
                    self.next = self.after(self.next);
                    break;
                }
                dropped.extend(packet.map(|packet| packet.packet));
                (packet, is_late) = self.look(now, queue);
                self.is_dropping = is_late;
                if is_late {
                    self.next = self.after(self.next);
                }
            }
        } else if is_late {
            if !packet.as_mut().is_some_and(|waiting| queue.marks(&mut waiting.packet)) {
                dropped.extend(packet.map(|packet| packet.packet));
                (packet, _) = self.look(now, queue);
            }
            self.is_dropping = true;
            // Resume near the previous drop rate if the dropping state was left only recently.
            let delta = self.count.saturating_sub(self.last_count);
            let is_recent = now.saturating_sub(self.next) < 16 * self.settings.interval;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.next = self.after(now);
            self.last_count = self.count;
        }
        packet
    }
}
