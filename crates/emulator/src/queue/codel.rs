//! Controlled delay (RFC 8289).

use super::{Mark, Queue, Waiting};
use crate::Nanos;

/// How long packets may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// So long is good (RFC 8289 section 4.4).
    pub target: Nanos,
    /// For so long more than the target is a burst (section 4.3).
    pub interval: Nanos,
    /// What waits behind so few bytes is sent: a queue of one packet is none.
    pub packet: u32,
}

impl Default for CoDel {
    fn default() -> Self {
        Self { target: 5_000_000, interval: 100_000_000, packet: 1514 }
    }
}

/// The variables of RFC 8289 section 5.2, with its names in comments.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: CoDel,
    /// `first_above_time_`: when the delay has been above the target for an interval.
    above_until: Option<Nanos>,
    /// `dropping_`.
    is_dropping: bool,
    /// `drop_next_`.
    next: Nanos,
    /// `count_`: since dropping began.
    count: u32,
    /// `lastcount_`.
    last_count: u32,
}

impl State {
    pub(super) fn new(settings: CoDel) -> Self {
        Self { settings, above_until: None, is_dropping: false, next: 0, count: 0, last_count: 0 }
    }

    /// `dodequeue`: a packet, and whether the delay has been too long for too long.
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

    /// `control_law`: drops come faster with the root of their number.
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
            // Not from the beginning where it has been dropping lately.
            let delta = self.count.saturating_sub(self.last_count);
            let is_recent = now.saturating_sub(self.next) < 16 * self.settings.interval;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.next = self.after(now);
            self.last_count = self.count;
        }
        packet
    }
}
