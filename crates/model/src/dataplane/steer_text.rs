//! The grammar of policies and of what names one, as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::file::Ipv6;
use super::types::Form;
use crate::document::Items;

/// Segment lists and how they are put on packets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Lists")]
pub(super) struct ListText {
    /// The only list.
    pub(super) segments: Option<Items<Ipv6>>,
    /// Several lists, which flows are spread over.
    pub(super) lists: Option<Items<WeightedText>>,
    /// `reduced` (H.Encaps.Red) when absent.
    pub(super) form: Option<Form>,
}

/// A list and its share.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WeightedList")]
pub(super) struct WeightedText {
    /// The segments, the first to visit first.
    pub(super) segments: Items<Ipv6>,
    /// Its share, in relation to the other lists' weights; 1 when absent.
    #[schemars(range(min = 1))]
    pub(super) weight: Option<u32>,
}

/// A policy: its only list, or a map.
#[derive(Debug)]
pub(super) struct PolicyText(pub(super) ListText);

/// A policy by its name, or one of its own.
#[derive(Debug)]
pub(super) enum SteerText {
    /// The name of one under `policies:`.
    Named(String),
    /// Its own.
    Own(Box<ListText>),
}

/// Reads a policy; by its name only where that is allowed.
struct SteerVisitor {
    named: bool,
}

impl<'de> Visitor<'de> for SteerVisitor {
    type Value = SteerText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.named { "a policy's name, " } else { "" })?;
        f.write_str("a list of segments, or a map such as {segments: […], form: whole}")
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
