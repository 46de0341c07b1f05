//! What a link is told to do.

use std::sync::Arc;

use crate::queue::{Discipline, Limit};
use crate::{Chance, Course, Impairments, Loss, Opportunities};

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Rate {
    /// At once.
    #[default]
    Unlimited,
    /// So many bits of layer 2 per second; with none, what is there waits.
    Constant(u64),
    /// As somebody recorded it.
    Recorded(Arc<Opportunities>),
}

/// All that a direction of a link does.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What happens to the n-th packet.
    pub impairments: Impairments,
    /// How fast it sends.
    pub rate: Rate,
    /// What waits in front of the rate at most.
    pub limit: Limit,
    /// What is dropped of it before.
    pub discipline: Discipline,
    /// Whether the discipline marks packets instead of dropping them, where their ends heed that.
    pub ecn: bool,
    /// What of that changes over time.
    pub course: Option<Course>,
    /// Whether it is cut: what comes, waits or flies is lost.
    pub is_down: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            impairments: Impairments::default(),
            rate: Rate::Unlimited,
            limit: Limit::Packets(1000),
            discipline: Discipline::DropTail,
            ecn: false,
            course: None,
            is_down: false,
        }
    }
}

impl Settings {
    /// Whether a packet that is many cannot be treated as one: whatever but a delay is each packet's
    /// own.
    pub(crate) fn tells_packets_apart(&self) -> bool {
        let Impairments { delay: _, jitter, loss, reorder, duplicate, corrupt } = &self.impairments;
        let never =
            [reorder, duplicate, corrupt].into_iter().all(|chance| *chance == Chance::NEVER);
        let delays_alone = never && jitter.is_none() && *loss == Loss::default();
        !delays_alone || self.rate != Rate::Unlimited || self.course.is_some()
    }

    /// Whether a packet is at the other end as it was, at once.
    pub(crate) fn is_plain(&self) -> bool {
        self.impairments == Impairments::default()
            && self.rate == Rate::Unlimited
            && !self.is_down
            && self.course.is_none()
    }
}
