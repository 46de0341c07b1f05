//! Packet loss models.

use crate::dice::Use;
use crate::{Chance, Dice};

/// Loss model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Each packet is lost independently.
    Independent(Chance),
    /// Bursty loss: the link is in a good or bad state, and may change state at each packet
    /// (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability of a transition from good to bad.
        p: Chance,
        /// Probability of a transition from bad to good.
        r: Chance,
        /// Loss probability in the bad state.
        bad: Chance,
        /// Loss probability in the good state.
        good: Chance,
    },
}

impl Default for Loss {
    fn default() -> Self {
        Self::Independent(Chance::NEVER)
    }
}

impl Loss {
    /// Creates a model that loses all packets in the bad state and none in the good state.
    pub fn bursts(p: Chance, r: Chance) -> Self {
        Self::GilbertElliott { p, r, bad: Chance::ALWAYS, good: Chance::NEVER }
    }

    /// Returns true if the n-th packet is lost. Updates `is_bad`, the state of the model.
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

    /// Returns the long-term loss rate.
    pub fn rate(self) -> f64 {
        match self {
            Self::Independent(chance) => chance.part(),
            Self::GilbertElliott { p, r, bad, good } => {
                let (p, r) = (p.part(), r.part());
                // Without transitions to bad, the link remains in its initial good state.
                let is_bad = if p == 0.0 { 0.0 } else { p / (p + r) };
                is_bad * bad.part() + (1.0 - is_bad) * good.part()
            }
        }
    }
}
