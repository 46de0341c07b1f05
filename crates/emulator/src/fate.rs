//! Per-packet impairments, determined by the packet's sequence number and not by its arrival time.

use std::time::Duration;

use model::topology;

use crate::dice::Use;
use crate::{Chance, Dice, Jitter, Loss, Nanos, Shape};

/// Impairments that depend only on a packet's sequence number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Impairments {
    /// Propagation delay, after the packet has been sent.
    pub delay: Nanos,
    /// Variation of the delay. Jitter does not reorder packets.
    pub jitter: Option<Jitter>,
    /// Packet loss.
    pub loss: Loss,
    /// Probability that a packet skips the delay and so overtakes the packets in flight.
    pub reorder: Chance,
    /// Probability that a packet is duplicated.
    pub duplicate: Chance,
    /// Probability that a packet is corrupted by a single bit error.
    pub corrupt: Chance,
}

impl Impairments {
    /// Converts a topology file's impairments. Jitter from a file, the queue discipline and filters
    /// are not among those of a packet.
    pub fn of(file: &topology::Impairments) -> Self {
        let chance = |share: topology::Share| Chance::new(share.part());
        Self {
            delay: nanos(file.delay),
            jitter: file.jitter.map(|jitter| Jitter {
                spread: nanos(jitter.spread),
                shape: match jitter.shape {
                    topology::Shape::Normal => Shape::Normal,
                    topology::Shape::Pareto => Shape::Pareto,
                    topology::Shape::Uniform => Shape::Uniform,
                },
            }),
            loss: match file.loss {
                topology::Loss::Independent(share) => Loss::Independent(chance(share)),
                topology::Loss::GilbertElliott { p, r, bad, good } => {
                    let [p, r, bad, good] = [p, r, bad, good].map(chance);
                    Loss::GilbertElliott { p, r, bad, good }
                }
            },
            reorder: chance(file.reorder),
            duplicate: chance(file.duplicate),
            corrupt: chance(file.corrupt),
        }
    }

    /// Returns true if all packets are treated alike: they only have the same delay.
    pub(crate) fn are_uniform(&self) -> bool {
        *self == Self { delay: self.delay, ..Self::default() }
    }
}

/// Converts a duration. A topology file limits times to a hundred years; longer ones are cut.
pub fn nanos(time: Duration) -> Nanos {
    u64::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Effect of an impairment on a packet that is not dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The packet was duplicated.
    Duplicated,
    /// The packet was corrupted by a bit error.
    Corrupted,
    /// The packet was sent without delay, whether or not it actually overtook another one.
    Reordered,
}

impl Effect {
    /// All effects, in declaration order.
    pub const ALL: [Self; 3] = [Self::Duplicated, Self::Corrupted, Self::Reordered];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duplicated => "copied",
            Self::Corrupted => "corrupted",
            Self::Reordered => "overtook",
        }
    }

    /// Returns the name and the help text of the metric.
    pub fn metric(self) -> (&'static str, &'static str) {
        match self {
            Self::Duplicated => ("link_copied_packets", "Packets that it duplicated"),
            Self::Corrupted => ("link_corrupted_packets", "Packets with a bit error"),
            Self::Reordered => ("link_overtaking_packets", "Packets without their delay"),
        }
    }
}

/// Outcome of the impairments for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// The packet is lost. The other fields have no meaning then.
    pub lost: bool,
    /// The packet is duplicated.
    pub duplicate: bool,
    /// Bit to invert if the packet is corrupted, modulo the packet's length in bits.
    pub corrupt: Option<u64>,
    /// The packet is reordered: it may overtake earlier packets.
    pub reorder: bool,
    /// Propagation delay.
    pub delay: Nanos,
}

/// Outcomes of a link's packets, in sequence.
#[derive(Debug, Clone)]
pub struct Fates {
    dice: Dice,
    next: u64,
    is_bad: bool,
}

impl Fates {
    /// Creates the sequence of a link with this generator.
    pub fn new(dice: Dice) -> Self {
        Self { dice, next: 0, is_bad: false }
    }

    /// Resumes the sequence at a packet. `is_bad` is the state of the loss model before that
    /// packet.
    pub(crate) fn at(dice: Dice, next: u64, is_bad: bool) -> Self {
        Self { dice, next, is_bad }
    }

    /// Returns true while the loss model is in its bad state (a loss burst).
    pub(crate) fn is_bad(&self) -> bool {
        self.is_bad
    }

    /// Returns the number of packets decided so far.
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Returns the next packet's random number for the queue discipline.
    pub(crate) fn discipline(&self) -> u64 {
        self.dice.roll(Use::Discipline, self.next)
    }

    /// Skips the next packets, on a link without impairments.
    pub(crate) fn skip(&mut self, count: u64) {
        self.next = self.next.wrapping_add(count);
    }

    /// Returns the outcome of the next packet under the link's present impairments.
    pub fn next(&mut self, link: &Impairments) -> Fate {
        let (dice, n) = (self.dice, self.next);
        // A capture may begin at any number.
        self.next = self.next.wrapping_add(1);
        // Skip the random draw for disabled impairments; this is the common case.
        let happens =
            |chance: Chance, of| chance != Chance::NEVER && chance.happens(dice.roll(of, n));
        if link.loss.takes(dice, n, &mut self.is_bad) {
            return Fate { lost: true, ..Fate::default() };
        }
        let reorder = happens(link.reorder, Use::Reorder);
        let later =
            link.jitter.as_ref().map_or(0, |jitter| jitter.sample(dice.roll(Use::Jitter, n)));
        let corrupt = happens(link.corrupt, Use::Corrupt);
        Fate {
            lost: false,
            duplicate: happens(link.duplicate, Use::Duplicate),
            corrupt: corrupt.then(|| dice.roll(Use::Bit, n)),
            reorder,
            delay: if reorder { 0 } else { link.delay.saturating_add_signed(later) },
        }
    }
}
