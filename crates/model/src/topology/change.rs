//! Changes to a running link, such as `delay=20ms`. Each changes a single option.

use std::fmt;

use super::impairments::{Discipline, Impairments, Jitter, Loss, Share};
use super::quantity::Queue;
use crate::Bandwidth;

/// A change to a single option of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange {
    /// `rate=100mbit`, or `rate=none`
    Rate(Option<Bandwidth>),
    /// `queue=250p codel`; `queue=250p codel ecn` to mark packets; `queue=none` for the default
    Queue(Queue, Discipline, bool),
    /// `delay=20ms`
    Delay(std::time::Duration),
    /// `jitter=2ms normal`, or `jitter=none`
    Jitter(Option<Jitter>),
    /// `loss=1%`; `loss=0.1%/20%` for bursts, with the transition probabilities from good to bad
    /// and back; `loss=0.1%/20%/50%/1%` with the loss in the bad and in the good state as well
    Loss(Loss),
    /// `reorder=1%`
    Reorder(Share),
    /// `duplicate=1%`
    Duplicate(Share),
    /// `corrupt=1%`
    Corrupt(Share),
}

fn ecn_word(ecn: bool) -> &'static str {
    if ecn { " ecn" } else { "" }
}

/// The syntax of the command line, exact to the unit: `delay=20000000ns`.
impl fmt::Display for LinkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Exact to the bit, since the short form is rounded.
            Self::Rate(None) => f.write_str("rate=none"),
            Self::Rate(Some(rate)) => write!(f, "rate={}bit", rate.bps()),
            Self::Queue(Queue::Auto, ..) => f.write_str("queue=none"),
            Self::Queue(Queue::Packets(limit), discipline, ecn) => {
                write!(f, "queue={limit}p {}{}", discipline.name(), ecn_word(*ecn))
            }
            Self::Queue(Queue::Bytes(limit), discipline, ecn) => {
                write!(f, "queue={limit}b {}{}", discipline.name(), ecn_word(*ecn))
            }
            Self::Delay(delay) => write!(f, "delay={}ns", delay.as_nanos()),
            Self::Jitter(None) => f.write_str("jitter=none"),
            Self::Jitter(Some(jitter)) => {
                write!(f, "jitter={}ns {}", jitter.spread.as_nanos(), jitter.shape.name())
            }
            Self::Loss(Loss::Independent(share)) => write!(f, "loss={share}"),
            Self::Loss(Loss::GilbertElliott { p, r, bad: Share::ALL, good: Share::NONE }) => {
                write!(f, "loss={p}/{r}")
            }
            Self::Loss(Loss::GilbertElliott { p, r, bad, good }) => {
                write!(f, "loss={p}/{r}/{bad}/{good}")
            }
            Self::Reorder(share) => write!(f, "reorder={share}"),
            Self::Duplicate(share) => write!(f, "duplicate={share}"),
            Self::Corrupt(share) => write!(f, "corrupt={share}"),
        }
    }
}

impl serde::Serialize for LinkChange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl LinkChange {
    /// `queue=none`
    pub const NO_QUEUE: Self = Self::Queue(Queue::Auto, Discipline::DropTail, false);

    /// A description such as `delay 40ms`.
    pub fn words(&self) -> String {
        match self {
            Self::Rate(Some(rate)) => format!("rate {rate}"),
            Self::Delay(delay) => format!("delay {delay:?}"),
            Self::Jitter(Some(jitter)) => {
                format!("jitter {:?} {}", jitter.spread, jitter.shape.name())
            }
            other => other.to_string().replacen('=', " ", 1),
        }
    }

    /// Applies the change. The rate and the queue's limit are not part of impairments.
    pub fn apply(self, to: &mut Impairments) {
        match self {
            Self::Rate(_) => {}
            Self::Queue(_, discipline, ecn) => {
                to.discipline = discipline;
                to.ecn = ecn;
            }
            Self::Delay(delay) => to.delay = delay,
            Self::Jitter(jitter) => {
                to.jitter = jitter;
                to.samples = None;
            }
            Self::Loss(loss) => to.loss = loss,
            Self::Reorder(share) => to.reorder = share,
            Self::Duplicate(share) => to.duplicate = share,
            Self::Corrupt(share) => to.corrupt = share,
        }
    }
}

/// A contradiction between impairments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contradiction {
    /// The jitter exceeds the delay.
    Jitter(Jitter, std::time::Duration),
    /// Reordering without a delay.
    Reorder,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jitter(jitter, delay) => write!(
                f,
                "a jitter of {:?} is more than the delay of {delay:?}: packets would arrive before \
                 they left",
                jitter.spread
            ),
            Self::Reorder => f.write_str(
                "`reorder` has no effect without a delay: there are no packets to overtake",
            ),
        }
    }
}

impl Impairments {
    /// The first contradiction between the impairments, if any.
    pub fn contradiction(&self) -> Option<Contradiction> {
        match self.jitter {
            Some(jitter) if jitter.spread > self.delay => {
                Some(Contradiction::Jitter(jitter, self.delay))
            }
            _ if self.reorder > Share::NONE && self.delay.is_zero() => Some(Contradiction::Reorder),
            _ => None,
        }
    }
}
