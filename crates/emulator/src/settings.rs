//! Settings of a link.

use std::sync::Arc;

use crate::queue::{Discipline, Limit};
use crate::{Course, Impairments, Opportunities};

/// Transmission rate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Rate {
    /// Packets are sent immediately.
    #[default]
    Unlimited,
    /// Layer-2 bits per second. With 0, packets stay in the queue.
    Constant(u64),
    /// A recorded rate trace.
    Recorded(Arc<Opportunities>),
}

/// Settings of one direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Per-packet impairments.
    pub impairments: Impairments,
    /// Transmission rate.
    pub rate: Rate,
    /// Queue limit.
    pub limit: Limit,
    /// Queue discipline.
    pub discipline: Discipline,
    /// True if the queue discipline marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Schedule of changes over time.
    pub course: Option<Course>,
    /// True if the link is down: arriving, queued and in-flight packets are dropped.
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
    /// Returns true if a batched packet must be split, because the link treats packets
    /// individually. Only a constant delay applies to a batch as a whole.
    pub(crate) fn tells_packets_apart(&self) -> bool {
        !self.impairments.are_uniform() || self.rate != Rate::Unlimited || self.course.is_some()
    }

    /// Returns true if packets arrive unchanged and without delay.
    pub(crate) fn is_plain(&self) -> bool {
        self.impairments == Impairments::default()
            && self.rate == Rate::Unlimited
            && !self.is_down
            && self.course.is_none()
    }
}
