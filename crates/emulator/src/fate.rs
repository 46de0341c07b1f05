//! Per-packet impairments, determined by the packet's sequence number and not by its arrival time.

use crate::dice::Use;
use crate::{Chance, Dice, Jitter, Loss, Nanos};

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

/// Outcome of the impairments for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// The packet is lost. The other fields have no meaning then.
    pub lost: bool,
    /// The packet is duplicated.
    pub twice: bool,
    /// Bit to invert if the packet is corrupted, modulo the packet's length in bits.
    pub wrong_bit: Option<u64>,
    /// The packet is reordered: it may overtake earlier packets.
    pub overtakes: bool,
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
        self.next += count;
    }

    /// Returns the outcome of the next packet under the link's present impairments.
    pub fn next(&mut self, link: &Impairments) -> Fate {
        let (dice, n) = (self.dice, self.next);
        self.next += 1;
        // Skip the random draw for disabled impairments; this is the common case.
        let happens =
            |chance: Chance, of| chance != Chance::NEVER && chance.happens(dice.roll(of, n));
        if link.loss.takes(dice, n, &mut self.is_bad) {
            return Fate { lost: true, ..Fate::default() };
        }
        let overtakes = happens(link.reorder, Use::Reorder);
        let later =
            link.jitter.as_ref().map_or(0, |jitter| jitter.sample(dice.roll(Use::Jitter, n)));
        let wrong = happens(link.corrupt, Use::Corrupt);
        Fate {
            lost: false,
            twice: happens(link.duplicate, Use::Duplicate),
            wrong_bit: wrong.then(|| dice.roll(Use::Bit, n)),
            overtakes,
            delay: if overtakes { 0 } else { link.delay.saturating_add_signed(later) },
        }
    }
}
