//! Grammar of an item of `events:` as serde types.

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

/// An event on a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// Time since the lab became ready.
    pub(super) at: Time,
    /// Name of the link.
    pub(super) link: String,
    /// Sending node of the affected direction; all directions if absent.
    pub(super) from: Option<String>,
    /// Time for which the link is down.
    pub(super) down: Option<Time>,
    /// True if the ends do not see that the link is down: packets are lost, but the carriers stay
    /// up.
    pub(super) silent: Option<bool>,
    /// New values of the link's options.
    pub(super) set: Option<Options>,
    /// Cross traffic on the link.
    pub(super) traffic: Option<TrafficText>,
}

/// New values of a link's options.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EventOptions")]
pub(super) struct Options {
    /// Rate limit in layer-2 bits per second.
    pub(super) rate: Option<OrNone<Bandwidth>>,
    /// Queue at the rate limit.
    pub(super) queue: Option<OrNone<QueueText>>,
    /// Added delay.
    pub(super) delay: Option<OrNone<Time>>,
    /// Delay variation.
    pub(super) jitter: Option<OrNone<JitterOption>>,
    /// Packet loss.
    pub(super) loss: Option<OrNone<Loss>>,
    /// Fraction of packets that overtake others.
    pub(super) reorder: Option<OrNone<Percent>>,
    /// Fraction of packets that are duplicated.
    pub(super) duplicate: Option<OrNone<Percent>>,
    /// Fraction of packets with a corrupted bit.
    pub(super) corrupt: Option<OrNone<Percent>>,
    // Options that cannot change, accepted here for a specific error message.
    #[schemars(skip)]
    pub(super) cost: Option<IgnoredAny>,
    #[schemars(skip)]
    pub(super) trace: Option<IgnoredAny>,
    #[schemars(skip)]
    pub(super) filter: Option<IgnoredAny>,
}

/// New value of an option, or `none` for its default.
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

            // The value's own parser reports that the number has no unit.
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
    /// Rate in layer-2 bits per second; for `on-off` the rate during on periods.
    pub(super) rate: Bandwidth,
    /// Duration.
    pub(super) r#for: Time,
    /// Distribution of packets over time; constant if absent.
    pub(super) pattern: Option<PatternText>,
    /// Mean duration of on periods, for `on-off`.
    pub(super) on: Option<Time>,
    /// Mean duration of off periods, for `on-off`.
    pub(super) off: Option<Time>,
    /// Packet size in layer-2 bytes; 1000b if absent.
    pub(super) size: Option<Size>,
    /// Address family of the packets; IPv4 if absent.
    pub(super) family: Option<Family>,
}

/// Distribution of cross traffic packets over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PatternText {
    /// Constant gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Alternating periods with constant gaps and without packets, both of exponentially
    /// distributed duration.
    OnOff,
}
