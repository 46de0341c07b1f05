//! Changes to a running link, such as `delay=20ms`. Each changes a single option.

use std::fmt;
use std::str::FromStr;

use super::units::{JitterText, Percent, QueueText, Time};
use super::values::impairments::{Discipline, Impairments, Jitter, Loss, Share};
use super::values::quantity::Queue;
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

/// The options that can be changed, for messages.
const KEYS: &str = "rate, queue, delay, jitter, loss, reorder, duplicate and corrupt";

impl FromStr for LinkChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| "write KEY=VALUE, such as delay=20ms".to_owned())?;
        let share = |value: &str| value.parse::<Percent>().map(|percent| percent.0);
        match key {
            "rate" if value == "none" => Ok(Self::Rate(None)),
            "queue" if value == "none" => Ok(Self::NO_QUEUE),
            "delay" if value == "none" => Ok(Self::Delay(std::time::Duration::ZERO)),
            "jitter" if value == "none" => Ok(Self::Jitter(None)),
            "loss" if value == "none" => Ok(Self::Loss(Loss::default())),
            "reorder" if value == "none" => Ok(Self::Reorder(Share::NONE)),
            "duplicate" if value == "none" => Ok(Self::Duplicate(Share::NONE)),
            "corrupt" if value == "none" => Ok(Self::Corrupt(Share::NONE)),
            "rate" => {
                let rate: Bandwidth = value.parse().map_err(|e| format!("{e}"))?;
                if rate.bytes_per_second() == 0 {
                    return Err(format!("a link's rate is at least 8bit, and {rate} is less"));
                }
                Ok(Self::Rate(Some(rate)))
            }
            "queue" => value
                .parse::<QueueText>()
                .map(|queue| Self::Queue(queue.limit, queue.discipline, queue.ecn)),
            "delay" => value.parse::<Time>().map(|time| Self::Delay(time.0)),
            "jitter" => value.parse::<JitterText>().map(|jitter| Self::Jitter(Some(jitter.0))),
            "loss" => loss(value).map(Self::Loss),
            "reorder" => share(value).map(Self::Reorder),
            "duplicate" => share(value).map(Self::Duplicate),
            "corrupt" => share(value).map(Self::Corrupt),
            other => Err(format!("`{other}` of a link cannot be changed: there are {KEYS}")),
        }
    }
}

fn loss(value: &str) -> Result<Loss, String> {
    let shares: Vec<Share> = value
        .split('/')
        .map(|text| text.parse::<Percent>().map(|percent| percent.0))
        .collect::<Result<_, _>>()?;
    let (all, none) = (Share::ALL, Share::NONE);
    match *shares {
        [share] => Ok(Loss::Independent(share)),
        [p, r] => Ok(Loss::GilbertElliott { p, r, bad: all, good: none }),
        [p, r, bad, good] => Ok(Loss::GilbertElliott { p, r, bad, good }),
        _ => Err(format!("`{value}` is not a loss: write 1%, or bursts as 0.1%/20%")),
    }
}

fn ecn_word(ecn: bool) -> &'static str {
    if ecn { " ecn" } else { "" }
}

/// The syntax that `FromStr` parses.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Shape;
    use super::*;

    #[test]
    fn changes_change_what_they_name_and_nothing_else() {
        let mut all = Impairments::default();
        let mut set = |text: &str| {
            text.parse::<LinkChange>().unwrap().apply(&mut all);
            all.clone()
        };
        let delayed = set("delay=20ms");
        assert_eq!(
            delayed,
            Impairments { delay: Duration::from_millis(20), ..Impairments::default() }
        );
        let jitter = Some(Jitter { spread: Duration::from_millis(2), shape: Shape::Uniform });
        assert_eq!(set("jitter=2ms uniform"), Impairments { jitter, ..delayed.clone() });
        assert_eq!(set("jitter=none"), delayed);
        let bursts = set("loss=0.1%/20%").loss;
        assert!(matches!(bursts, Loss::GilbertElliott { bad: Share::ALL, .. }));
        assert_eq!(set("loss=0%"), delayed);
        assert_eq!(delayed.contradiction(), None);
        assert_eq!(set("delay=0ms").contradiction(), None);
        for one in ["queue=9p codel ecn", "jitter=0ms", "loss=1%", "duplicate=1%", "corrupt=1%"] {
            assert_ne!(set(one), Impairments::default(), "{one}");
            let none = one.split_once('=').unwrap().0.to_owned() + "=none";
            assert_eq!(set(&none), Impairments::default(), "{none}");
        }
        set("delay=1ms");
        set("reorder=1%");
        set("reorder=none");
        assert_eq!(set("delay=none"), Impairments::default());
        assert_eq!(set("reorder=1%").contradiction(), Some(Contradiction::Reorder));
    }

    #[test]
    fn changes_are_written_as_they_are_read() {
        for text in [
            "rate=12.345678mbit",
            "rate=none",
            "queue=none",
            "queue=250p codel",
            "queue=64kb pie ecn",
            "queue=64kb",
            "delay=1.5ms",
            "jitter=2ms pareto",
            "jitter=none",
            "loss=0.1%/20%",
            "loss=0.1%/20%/50%/0.5%",
            "loss=0.0000001%",
            "reorder=1%",
            "duplicate=33.3%",
            "corrupt=100%",
        ] {
            let change: LinkChange = text.parse().unwrap();
            assert_eq!(change.to_string().parse(), Ok(change), "{change}");
        }
    }

    #[test]
    fn what_is_no_change_says_why() {
        for (text, words) in [
            ("delay", "KEY=VALUE"),
            ("delay=20", "has no unit"),
            ("rate=7bit", "at least 8bit, and 7bit is less"),
            ("loss=1%/x", "not a percentage"),
            ("loss=1%/2%/3%", "write 1%, or bursts"),
            ("color=red", "`color` of a link cannot be changed: there are rate"),
            ("queue=0p", "is not a queue"),
        ] {
            let said = text.parse::<LinkChange>().unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
