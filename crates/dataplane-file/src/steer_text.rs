//! The grammar of policies and of references to them, as serde types.

use std::borrow::Cow;
use std::fmt;

use document::Items;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use srv6::Form;

use super::scalars::Ipv6;

/// Segment lists and their encapsulation mode.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lists")]
pub(crate) struct ListText {
    /// The only list.
    pub(crate) segments: Option<Items<Ipv6>>,
    /// Several lists. Flows are distributed over them by weight.
    pub(crate) lists: Option<Items<WeightedText>>,
    /// Encapsulation mode; H.Encaps.Red if absent.
    pub(crate) form: Option<Form>,
    /// Position in bits of the argument of the last segment, to which H.M.GTP4.D, End.M.GTP6.D and
    /// End.M.GTP6.D.Di write the session.
    #[schemars(range(min = 8, max = 88))]
    pub(crate) args: Option<u32>,
    /// Position in bits of the IPv4 source in the outer source of H.M.GTP4.D; 64 if absent.
    #[schemars(range(min = 8, max = 96))]
    pub(crate) source_args: Option<u32>,
}

/// A segment list and its weight.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WeightedList")]
pub(crate) struct WeightedText {
    /// The segments, in path order.
    pub(crate) segments: Items<Ipv6>,
    /// Weight relative to the other lists; 1 if absent.
    #[schemars(range(min = 1))]
    pub(crate) weight: Option<u32>,
}

/// A policy: a single list, or a map.
#[derive(Debug)]
pub(crate) struct PolicyText(pub(crate) ListText);

/// Reference to a policy, or a policy defined in place.
#[derive(Debug)]
pub(crate) enum SteerText {
    /// The name of a policy under `policies:`.
    Named(String),
    /// A policy defined in place.
    Own(Box<ListText>),
}

/// Parses a policy. References by name are accepted only if `named` is set.
struct SteerVisitor {
    named: bool,
}

impl<'de> Visitor<'de> for SteerVisitor {
    type Value = SteerText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.named { "a policy's name, " } else { "" })?;
        f.write_str("a list of segments, or a map such as {segments: […], form: H.Encaps}")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<SteerText, E> {
        if self.named {
            return Ok(SteerText::Named(name.into()));
        }
        Err(E::invalid_type(serde::de::Unexpected::Str(name), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<SteerText, A::Error> {
        let segments = Some(Items::deserialize(SeqAccessDeserializer::new(list))?);
        Ok(SteerText::Own(Box::new(ListText { segments, ..ListText::default() })))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SteerText, A::Error> {
        let list = ListText::deserialize(MapAccessDeserializer::new(map))?;
        Ok(SteerText::Own(Box::new(list)))
    }
}

impl<'de> Deserialize<'de> for SteerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SteerVisitor { named: true })
    }
}

impl<'de> Deserialize<'de> for PolicyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(SteerVisitor { named: false })? {
            SteerText::Own(list) => Ok(Self(*list)),
            SteerText::Named(_) => Ok(Self(ListText::default())),
        }
    }
}

impl JsonSchema for SteerText {
    fn schema_name() -> Cow<'static, str> {
        "PolicyOrName".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let policy = generator.subschema_for::<PolicyText>();
        json_schema!({"anyOf": [{"type": "string"}, policy]})
    }
}

impl JsonSchema for PolicyText {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let segments = generator.subschema_for::<Items<Ipv6>>();
        let map = generator.subschema_for::<ListText>();
        json_schema!({"anyOf": [segments, map]})
    }
}
