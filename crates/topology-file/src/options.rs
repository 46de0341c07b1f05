//! Options of a link: one list for a link as a whole, for its reverse direction and for events.

use std::time::Duration;

use document::{Prefix4, Prefix6, Time};
use model::Bandwidth;
use model::topology::{LinkChange, Loss, Share};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use super::option_text::{EngineKey, Filter, JitterOption, Loss as LossText, OrNone};
use super::units::{Percent, QueueText};

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
