//! Options of a link: one list for a link as a whole, for its reverse direction and for events; and
//! the text of a change on the command line, such as `delay=20ms`.

use std::time::Duration;

use document::{Prefix4, Prefix6, Time};
use model::Bandwidth;
use model::topology::{LinkChange, Loss, Share};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use super::option_text::{EngineKey, Filter, JitterOption, Loss as LossText, OrNone};
use super::units::{JitterText, Percent, QueueText};

/// Options of a link or a LAN.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LinkOptions", transform = add_reverse)]
pub(crate) struct Options {
    /// Members of a LAN.
    pub(crate) nodes: Option<Vec<String>>,
    /// Inner MTU: size of the largest packet that hosts send over the link, without SRv6 headers.
    #[schemars(range(min = 1280, max = 9000))]
    pub(crate) mtu: Option<u16>,
    /// IPv4 prefix of the link, instead of the automatic one.
    pub(crate) ipv4: Option<Prefix4>,
    /// IPv6 prefix of the link, instead of the automatic one.
    pub(crate) ipv6: Option<Prefix6>,
    /// Backend of the link: `true` for the emulator even if a kernel link would suffice, `netem`
    /// for the kernel's netem.
    pub(crate) engine: Option<EngineKey>,
    /// Different options for the direction from the second node to the first.
    #[schemars(skip)]
    pub(crate) reverse: Option<Box<Options>>,
    /// Rate limit of each direction in layer-2 bits per second: `100mbit`, `1.5gbit`.
    pub(crate) rate: Option<OrNone<Bandwidth>>,
    /// Queue at the rate limit, with a discipline: `250p`, `64kb`, `250p codel ecn`.
    pub(crate) queue: Option<OrNone<QueueText>>,
    /// IGP cost, 10 if absent; never derived from the rate.
    #[schemars(range(min = 1))]
    pub(crate) cost: Option<u16>,
    /// Delay of each packet: `20ms`.
    pub(crate) delay: Option<OrNone<Time>>,
    /// Variation of the delay, at most the delay: `2ms`, `2ms pareto`, `{file: delays.txt}`.
    pub(crate) jitter: Option<OrNone<JitterOption>>,
    /// Fraction of packets lost: `1%`, or in bursts: `{gilbert-elliott: {p: 0.1%, r: 20%}}`.
    pub(crate) loss: Option<OrNone<LossText>>,
    /// Fraction of packets without delay, which overtake packets in flight: `1%`.
    pub(crate) reorder: Option<OrNone<Percent>>,
    /// Fraction of packets that are duplicated: `1%`.
    pub(crate) duplicate: Option<OrNone<Percent>>,
    /// Fraction of packets with one bit error after the Ethernet header: `1%`.
    pub(crate) corrupt: Option<OrNone<Percent>>,
    /// File of packet departure times, or of the link's options over time (CSV).
    pub(crate) trace: Option<String>,
    /// Filters for packets to drop: `[{protocol: tcp, ports: 22}]`.
    pub(crate) filter: Option<Vec<Filter>>,
}

/// Keys of a link as a whole, which a direction cannot have.
pub(crate) const OF_LINK: [&str; 6] = ["nodes", "mtu", "ipv4", "ipv6", "engine", "reverse"];
/// Keys that an event cannot have, besides those of a link as a whole.
pub(crate) const FIXED: [&str; 3] = ["cost", "trace", "filter"];

impl Options {
    /// The changes to a link without options, each with its key. A file of delays, a trace and
    /// filters are not among them.
    pub(crate) fn changes(&self) -> Vec<(&'static str, LinkChange)> {
        let share = |given: &OrNone<Percent>| given.value().map_or(Share::NONE, |share| share.0);
        let queue = |given: &OrNone<QueueText>| match given.value() {
            None => LinkChange::NO_QUEUE,
            Some(queue) => LinkChange::Queue(queue.limit, queue.discipline, queue.ecn),
        };
        let jitter = |given: &OrNone<JitterOption>| match given.value() {
            None => Some(LinkChange::Jitter(None)),
            Some(jitter) => jitter.spread().map(|jitter| LinkChange::Jitter(Some(jitter))),
        };
        let delay = |given: &OrNone<Time>| given.value().map_or(Duration::ZERO, |delay| delay.0);
        let loss = |given: &OrNone<LossText>| given.value().map_or(Loss::default(), |loss| loss.0);
        let changes = [
            ("rate", self.rate.as_ref().map(|rate| LinkChange::Rate(rate.value().copied()))),
            ("queue", self.queue.as_ref().map(queue)),
            ("delay", self.delay.as_ref().map(|given| LinkChange::Delay(delay(given)))),
            ("jitter", self.jitter.as_ref().and_then(jitter)),
            ("loss", self.loss.as_ref().map(|given| LinkChange::Loss(loss(given)))),
            ("reorder", self.reorder.as_ref().map(|given| LinkChange::Reorder(share(given)))),
            ("duplicate", self.duplicate.as_ref().map(|given| LinkChange::Duplicate(share(given)))),
            ("corrupt", self.corrupt.as_ref().map(|given| LinkChange::Corrupt(share(given)))),
        ];
        changes.into_iter().filter_map(|(key, change)| Some((key, change?))).collect()
    }

    /// The file of additional delays.
    pub(crate) fn jitter_file(&self) -> Option<&str> {
        self.jitter.as_ref()?.value()?.file()
    }
}

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
        "delay" if value == "none" => Ok(LinkChange::Delay(Duration::ZERO)),
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

/// Adds `reverse`, whose schema is that of the link without the keys of a link as a whole.
fn add_reverse(link: &mut Schema) {
    let mut direction = without(link.clone(), &OF_LINK);
    let description = "Options of the second node's direction that differ.";
    direction.insert("description".into(), description.into());
    if let Some(properties) = link.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("reverse".into(), direction.into());
    }
}

/// The schema of an event's options.
pub(crate) fn of_event(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<Options>();
    let link = generator.definitions()[&*Options::schema_name()].clone();
    let link = link.try_into().expect("a definition is a schema");
    let mut event = without(link, &[&OF_LINK[..], &FIXED].concat());
    event.insert("description".into(), "New values of the link's options.".into());
    event
}

fn without(mut schema: Schema, keys: &[&str]) -> Schema {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|key, _| !keys.contains(&key.as_str()));
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::topology::{Contradiction, Impairments, Jitter, Shape};

    use super::*;

    #[test]
    fn a_change_changes_only_its_setting() {
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
    fn an_invalid_change_is_refused_with_a_reason() {
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
