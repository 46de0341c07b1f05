//! Settings and counters of links and edges at one time.

use api::v1;
use emulator::{Backlog, Cause, Counts, CrossCounts, Effect, LinkId, Nanos, Network, Rate};

use crate::EdgeCounts;
use crate::plan::Direction;

/// Counters of a direction.
pub(crate) struct Tally {
    counts: Counts,
    cross: CrossCounts,
    waiting: Backlog,
    inside: usize,
    filtered: u64,
    marked: u64,
    delay_ns: u64,
    loss: f64,
    rate_bps: Option<u64>,
    is_down: bool,
}

impl Tally {
    /// Reads the present values.
    pub(crate) fn take(network: &Network, now: Nanos, id: LinkId) -> Self {
        let link = network.get(id);
        let does = link.current(now);
        Self {
            counts: *link.counts(),
            cross: *network.cross(id),
            waiting: link.waiting(),
            inside: link.inside(),
            filtered: network.filtered(id),
            marked: link.marked(),
            delay_ns: does.impairments.delay,
            loss: does.impairments.loss.rate(),
            rate_bps: match &does.rate {
                Rate::Unlimited => None,
                Rate::Constant(bps) => Some(*bps),
                Rate::Recorded(trace) => Some(trace.mean_bps()),
            },
            is_down: does.is_down,
        }
    }

    /// Returns settings and counters of the direction.
    pub(crate) fn of(&self, direction: &Direction) -> v1::EmulatedDirection {
        let Self { counts, cross, waiting, .. } = self;
        let number = |edge: usize| u32::try_from(edge).ok();
        v1::EmulatedDirection {
            link: direction.link.clone(),
            from: direction.from.clone(),
            to: direction.to.clone().unwrap_or_default(),
            does: direction.does(),
            received: counts.received,
            arrived: counts.arrived,
            arrived_bytes: counts.arrived_bytes,
            effects: Effect::ALL
                .map(|effect| v1::EmulatedEffect {
                    effect: effect.name().into(),
                    packets: counts.effect(effect),
                })
                .into(),
            inside: self.inside as u64,
            waiting: waiting.packets as u64,
            waiting_bytes: waiting.bytes,
            filtered: self.filtered,
            marked: self.marked,
            cross_sent: cross.sent,
            cross_sent_bytes: cross.sent_bytes,
            cross_arrived: cross.arrived,
            cross_arrived_bytes: cross.arrived_bytes,
            cross_overdue: cross.overdue,
            dropped: Cause::ALL
                .map(|cause| v1::EmulatedDrops {
                    cause: cause.name().into(),
                    packets: counts.dropped(cause),
                })
                .into(),
            interface: direction.interface.clone().unwrap_or_default(),
            delay_ns: self.delay_ns,
            loss: self.loss,
            rate_bps: self.rate_bps,
            down: self.is_down,
            delayed_s: seconds(counts.delayed),
            entry: direction.entry.and_then(number),
            exit: direction.exit.and_then(number),
        }
    }

    /// Returns the direction as the sending node sees it: an interface with a queue. Losses after
    /// the queue are not counted as its drops.
    pub(crate) fn interface(&self, direction: &Direction) -> Option<v1::EmulatedInterface> {
        let Self { counts, .. } = self;
        let queue = [Cause::Full, Cause::Early, Cause::Backlog];
        let dropped = queue.into_iter().map(|cause| counts.dropped(cause)).sum();
        Some(v1::EmulatedInterface {
            name: direction.interface.clone()?,
            rate_bps: self.rate_bps,
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            dropped,
            lost: counts.all_dropped() - dropped + self.filtered,
            backlog_bytes: self.waiting.bytes,
        })
    }
}

/// Converts the counters of an edge.
pub(crate) fn edge(counts: &EdgeCounts) -> v1::EmulatedEdge {
    let EdgeCounts { gate, lateness } = counts;
    v1::EmulatedEdge {
        received: gate.received,
        misunderstood: gate.misunderstood,
        overflowed: gate.overflowed,
        sent: gate.sent,
        refused: gate.refused,
        lateness: Some(v1::Lateness {
            steps: lateness.steps.into(),
            sum_s: seconds(lateness.sum),
            max_ns: lateness.max,
        }),
    }
}

fn seconds(nanos: u128) -> f64 {
    nanos as f64 / 1e9
}
