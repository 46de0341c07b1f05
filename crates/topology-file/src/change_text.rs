//! The syntax of changes to a running link, such as `delay=20ms`.

use document::Time;
use model::Bandwidth;
use model::topology::{LinkChange, Loss, Share};

use super::units::{JitterText, Percent, QueueText};

/// The options that can be changed, for messages.
const KEYS: &str = "rate, queue, delay, jitter, loss, reorder, duplicate and corrupt";

/// Parses a change to a running link, such as `delay=20ms`.
pub fn link_change(text: &str) -> Result<LinkChange, String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| "write KEY=VALUE, such as delay=20ms".to_owned())?;
    let share = |value: &str| value.parse::<Percent>().map(|percent| percent.0);
    match key {
        "rate" if value == "none" => Ok(LinkChange::Rate(None)),
        "queue" if value == "none" => Ok(LinkChange::NO_QUEUE),
        "delay" if value == "none" => Ok(LinkChange::Delay(std::time::Duration::ZERO)),
        "jitter" if value == "none" => Ok(LinkChange::Jitter(None)),
        "loss" if value == "none" => Ok(LinkChange::Loss(Loss::default())),
        "reorder" if value == "none" => Ok(LinkChange::Reorder(Share::NONE)),
        "duplicate" if value == "none" => Ok(LinkChange::Duplicate(Share::NONE)),
        "corrupt" if value == "none" => Ok(LinkChange::Corrupt(Share::NONE)),
        "rate" => {
            let rate: Bandwidth = value.parse().map_err(|e| format!("{e}"))?;
            if rate.bytes_per_second() == 0 {
                return Err(format!("a link's rate is at least 8bit, and {rate} is less"));
            }
            Ok(LinkChange::Rate(Some(rate)))
        }
        "queue" => value
            .parse::<QueueText>()
            .map(|queue| LinkChange::Queue(queue.limit, queue.discipline, queue.ecn)),
        "delay" => value.parse::<Time>().map(|time| LinkChange::Delay(time.0)),
        "jitter" => value.parse::<JitterText>().map(|jitter| LinkChange::Jitter(Some(jitter.0))),
        "loss" => loss(value).map(LinkChange::Loss),
        "reorder" => share(value).map(LinkChange::Reorder),
        "duplicate" => share(value).map(LinkChange::Duplicate),
        "corrupt" => share(value).map(LinkChange::Corrupt),
        other => Err(format!("`{other}` of a link cannot be changed: there are {KEYS}")),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::topology::{Contradiction, Impairments, Jitter, Shape};

    use super::*;

    #[test]
    fn changes_change_what_they_name_and_nothing_else() {
        let mut all = Impairments::default();
        let mut set = |text: &str| {
            link_change(text).unwrap().apply(&mut all);
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
            let change = link_change(text).unwrap();
            assert_eq!(link_change(&change.to_string()), Ok(change), "{change}");
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
            let said = link_change(text).unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
