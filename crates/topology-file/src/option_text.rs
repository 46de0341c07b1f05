//! Values of a link's options as serde types.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use document::PrefixOrAddress;
use model::topology::{self, Share};
use model::{PortRange, Protocol};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IntoDeserializer as _, MapAccess, Visitor};

use super::units::{JitterText, Percent};

/// A filter for packets to drop.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Filter {
    /// Source prefix.
    pub(crate) from: Option<PrefixOrAddress>,
    /// Destination prefix.
    pub(crate) to: Option<PrefixOrAddress>,
    /// Transport protocol.
    pub(crate) protocol: Option<Protocol>,
    /// Destination ports.
    pub(crate) ports: Option<PortRange>,
}

/// Delay variation: `2ms normal`, or a file.
#[derive(Debug, Clone)]
pub(crate) enum JitterOption {
    /// A named distribution.
    Spread(topology::Jitter),
    /// A file of additional delays.
    File(String),
}

impl JitterOption {
    pub(crate) fn spread(&self) -> Option<topology::Jitter> {
        match self {
            Self::Spread(jitter) => Some(*jitter),
            Self::File(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Spread(_) => None,
            Self::File(file) => Some(file),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JitterFile {
    /// File of additional delays, one per line with a unit.
    file: String,
}

impl<'de> Deserialize<'de> for JitterOption {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = JitterOption;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a jitter such as `2ms normal`, or {file: delays.txt}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<JitterOption, E> {
                let jitter = text.parse::<JitterText>().map_err(E::custom)?;
                Ok(JitterOption::Spread(jitter.0))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JitterOption, A::Error> {
                let map = JitterFile::deserialize(MapAccessDeserializer::new(map))?;
                Ok(JitterOption::File(map.file))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for JitterOption {
    fn schema_name() -> Cow<'static, str> {
        "JitterOption".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = generator.subschema_for::<JitterText>();
        let map = generator.subschema_for::<JitterFile>();
        json_schema!({"oneOf": [text, map]})
    }
}

/// Packet loss: a fraction, or bursts (Gilbert-Elliott).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss(pub(crate) topology::Loss);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LossMap {
    gilbert_elliott: GilbertElliott,
}

/// Two-state loss model: transitions from good to bad with probability `p`, back with `r`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GilbertElliott {
    /// Probability per packet of a transition from good to bad.
    p: Percent,
    /// Probability per packet of a transition from bad to good.
    r: Percent,
    /// Loss in the bad state; 100% if absent.
    bad: Option<Percent>,
    /// Loss in the good state; 0% if absent.
    good: Option<Percent>,
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Loss;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage such as 1%, or {gilbert-elliott: {p: 0.1%, r: 20%}}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Loss, E> {
                let share = text.parse::<Percent>().map_err(E::custom)?.0;
                Ok(Loss(topology::Loss::Independent(share)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let map = LossMap::deserialize(MapAccessDeserializer::new(map))?;
                let GilbertElliott { p, r, bad, good } = map.gilbert_elliott;
                let share = |given: Option<Percent>, otherwise| given.map_or(otherwise, |p| p.0);
                let (bad, good) = (share(bad, Share::ALL), share(good, Share::NONE));
                Ok(Loss(topology::Loss::GilbertElliott { p: p.0, r: r.0, bad, good }))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let percent = generator.subschema_for::<Percent>();
        let map = generator.subschema_for::<LossMap>();
        json_schema!({"oneOf": [percent, map]})
    }
}

/// Value of an option, or `none` for its default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OrNone<T> {
    None,
    Value(T),
}

impl<T> OrNone<T> {
    pub(crate) fn value(&self) -> Option<&T> {
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

/// Value of `engine`: `true`, `false` or `netem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKey {
    /// The emulator if the link needs it.
    AsNeeded,
    /// Always the emulator.
    Emulator,
    /// Always netem.
    Netem,
}

impl<'de> Deserialize<'de> for EngineKey {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = EngineKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or netem")
            }

            fn visit_bool<E>(self, is_wanted: bool) -> Result<EngineKey, E> {
                Ok(if is_wanted { EngineKey::Emulator } else { EngineKey::AsNeeded })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EngineKey, E> {
                if text == "netem" {
                    return Ok(EngineKey::Netem);
                }
                Err(E::custom(format!("`{text}` is not an engine: write true, false or netem")))
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for EngineKey {
    fn schema_name() -> Cow<'static, str> {
        "EngineKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "boolean"}, {"const": "netem"}]})
    }
}
