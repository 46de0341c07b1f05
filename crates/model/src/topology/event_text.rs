//! The grammar of one item of `events:` as serde types.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor};

use super::link_text::{JitterOption, Loss};
use super::test::Family;
use super::traffic::Size;
use super::units::{Percent, QueueText, Time};
use crate::Bandwidth;

/// Something that happens to a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// When, counted from the moment the lab is ready.
    pub(super) at: Time,
    /// Which link.
    pub(super) link: String,
    /// The node whose sending it is about; all of the link's when absent.
    pub(super) from: Option<String>,
    /// For how long the link is down.
    pub(super) down: Option<Time>,
    /// Whether no end sees that it is down: packets are lost, and carriers stay.
    pub(super) silent: Option<bool>,
    /// What the link's options become.
    pub(super) set: Option<Options>,
    /// Packets of others that the link carries as well.
    pub(super) traffic: Option<TrafficText>,
}

/// What a link's options become.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EventOptions")]
pub(super) struct Options {
    /// Layer-2 bits per second.
    pub(super) rate: Option<OrNone<Bandwidth>>,
    /// What waits in front of the rate limit.
    pub(super) queue: Option<OrNone<QueueText>>,
    /// How much later packets arrive.
    pub(super) delay: Option<OrNone<Time>>,
    /// By how much the delay varies.
    pub(super) jitter: Option<OrNone<JitterOption>>,
    /// Which packets are lost.
    pub(super) loss: Option<OrNone<Loss>>,
    /// How many packets overtake others.
    pub(super) reorder: Option<OrNone<Percent>>,
    /// How many packets arrive twice.
    pub(super) duplicate: Option<OrNone<Percent>>,
    /// How many packets arrive with a wrong bit.
    pub(super) corrupt: Option<OrNone<Percent>>,
    // What a link has from the start, to be told so.
    #[schemars(skip)]
    pub(super) cost: Option<IgnoredAny>,
    #[schemars(skip)]
    pub(super) trace: Option<IgnoredAny>,
    #[schemars(skip)]
    pub(super) filter: Option<IgnoredAny>,
}

/// What an option becomes: a value, or `none`, as where a file does not give it.
#[derive(Debug, Clone, Copy)]
pub(super) enum OrNone<T> {
    None,
    Value(T),
}

impl<T> OrNone<T> {
    pub(super) fn value(&self) -> Option<&T> {
        match self {
            Self::None => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OrNone<T> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = OrNone<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("what the option becomes, or `none`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OrNone<T>, E> {
                match text {
                    "none" => Ok(OrNone::None),
                    _ => T::deserialize(text.into_deserializer()).map(OrNone::Value),
                }
            }

            // A number without a unit: the value's own parser says what it lacks.
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<OrNone<T>, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OrNone<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(OrNone::Value)
            }
        }
        deserializer.deserialize_any(V(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for OrNone<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrNone", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({"anyOf": [{"const": "none"}, value]})
    }
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficText {
    /// Layer-2 bits per second; of `on-off` while it is on.
    pub(super) rate: Bandwidth,
    /// For how long.
    pub(super) r#for: Time,
    /// How packets are spread over time: evenly when absent.
    pub(super) pattern: Option<PatternText>,
    /// How long `on-off` sends on average before it pauses.
    pub(super) on: Option<Time>,
    /// How long `on-off` pauses on average.
    pub(super) off: Option<Time>,
    /// How long a packet is, in bytes of layer 2: 1000b when absent.
    pub(super) size: Option<Size>,
    /// What kind of packets: IPv4 when absent.
    pub(super) family: Option<Family>,
}

/// How packets of cross traffic are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PatternText {
    /// All gaps are the same.
    Constant,
    /// Gaps are exponentially distributed.
    Poisson,
    /// It sends evenly for a while, and pauses for a while, both exponentially distributed.
    OnOff,
}
