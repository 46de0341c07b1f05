//! What becomes of the n-th packet of a link, whenever it comes.

use crate::dice::Use;
use crate::{Chance, Dice, Jitter, Loss, Nanos};

/// What a link does to packets that depends on their number alone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Impairments {
    /// How long a packet is on its way, once it is sent.
    pub delay: Nanos,
    /// By how much that varies. It makes no packet overtake another one.
    pub jitter: Option<Jitter>,
    /// Which packets are lost.
    pub loss: Loss,
    /// How many packets have no delay, and so overtake those on their way.
    pub reorder: Chance,
    /// How many packets come twice.
    pub duplicate: Chance,
    /// How many packets have a wrong bit.
    pub corrupt: Chance,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// It is lost: nothing else matters.
    pub lost: bool,
    /// It comes twice.
    pub twice: bool,
    /// It has a wrong bit: this one, modulo as many as it has.
    pub wrong_bit: Option<u64>,
    /// It overtakes those before it.
    pub overtakes: bool,
    /// How long it is on its way.
    pub delay: Nanos,
}

/// The fates of a link's packets, one after another.
#[derive(Debug, Clone)]
pub struct Fates {
    dice: Dice,
    next: u64,
    is_bad: bool,
}

impl Fates {
    /// Those of a link with these dice.
    pub fn new(dice: Dice) -> Self {
        Self { dice, next: 0, is_bad: false }
    }

    /// Those from a packet on. `is_bad`: whether a burst of losses is on before it.
    pub(crate) fn at(dice: Dice, next: u64, is_bad: bool) -> Self {
        Self { dice, next, is_bad }
    }

    /// Whether a burst of losses is on.
    pub(crate) fn is_bad(&self) -> bool {
        self.is_bad
    }

    /// How many packets have had theirs.
    pub fn count(&self) -> u64 {
        self.next
    }

    /// The number for the queue's discipline of the packet that is next.
    pub(crate) fn discipline(&self) -> u64 {
        self.dice.roll(Use::Discipline, self.next)
    }

    /// The next packets', on a link that does nothing to them.
    pub(crate) fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// The next packet's, on a link that does this now.
    pub fn next(&mut self, link: &Impairments) -> Fate {
        let (dice, n) = (self.dice, self.next);
        self.next += 1;
        // Nobody throws for what never happens: that is most of what most links do.
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
