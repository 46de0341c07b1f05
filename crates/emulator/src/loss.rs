//! Which packets a link loses.

use crate::dice::Use;
use crate::{Chance, Dice};

/// How packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Each by itself.
    Independent(Chance),
    /// In bursts: a link is good or bad, and may change with each packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// From good to bad.
        p: Chance,
        /// From bad to good.
        r: Chance,
        /// How likely a packet is lost while the link is bad.
        bad: Chance,
        /// How likely a packet is lost while the link is good.
        good: Chance,
    },
}

impl Default for Loss {
    fn default() -> Self {
        Self::Independent(Chance::NEVER)
    }
}

impl Loss {
    /// Bursts in which everything is lost, and nothing between them.
    pub fn bursts(p: Chance, r: Chance) -> Self {
        Self::GilbertElliott { p, r, bad: Chance::ALWAYS, good: Chance::NEVER }
    }

    /// Whether the n-th packet is lost. `is_bad`: whether the link is bad, before and after.
    pub(crate) fn takes(self, dice: Dice, n: u64, is_bad: &mut bool) -> bool {
        let chance = match self {
            Self::Independent(chance) => chance,
            Self::GilbertElliott { p, r, bad, good } => {
                let changes = if *is_bad { r } else { p };
                *is_bad ^= changes.happens(dice.roll(Use::Burst, n));
                if *is_bad { bad } else { good }
            }
        };
        chance != Chance::NEVER && chance.happens(dice.roll(Use::Loss, n))
    }

    /// The part of packets that are lost in the long run.
    pub fn rate(self) -> f64 {
        match self {
            Self::Independent(chance) => chance.part(),
            Self::GilbertElliott { p, r, bad, good } => {
                let (p, r) = (p.part(), r.part());
                // One that never becomes bad is good: it is at first.
                let is_bad = if p == 0.0 { 0.0 } else { p / (p + r) };
                is_bad * bad.part() + (1.0 - is_bad) * good.part()
            }
        }
    }
}
