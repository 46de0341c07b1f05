//! The grammar of VLANs in the SR domain, as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Tags of frames: a VLAN ID, or a map.
#[derive(Debug)]
pub(crate) struct VlanText(pub(crate) TagsText);

/// Frames with exactly these tags.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tags")]
pub(crate) struct TagsText {
    /// The outer, or only, tag.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) vlan: Option<u32>,
    /// The inner of two tags.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) inner: Option<u32>,
}

struct VlanVisitor;

impl<'de> Visitor<'de> for VlanVisitor {
    type Value = VlanText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a VLAN ID such as 100, or a map such as {vlan: 200, inner: 10}")
    }

    fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<VlanText, E> {
        // A larger number is not a VLAN ID either.
        let vlan = Some(u32::try_from(id).unwrap_or(u32::MAX));
        Ok(VlanText(TagsText { vlan, inner: None }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VlanText, A::Error> {
        TagsText::deserialize(MapAccessDeserializer::new(map)).map(VlanText)
    }
}

impl<'de> Deserialize<'de> for VlanText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VlanVisitor)
    }
}

impl JsonSchema for VlanText {
    fn schema_name() -> Cow<'static, str> {
        "Vlan".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<TagsText>();
        json_schema!({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4094}, map]})
    }
}
