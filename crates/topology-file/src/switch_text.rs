//! Grammar of a node's switch as serde types.

use std::borrow::Cow;
use std::fmt;

use document::Entries;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, MapAccess, Visitor};
use tenants_file::TenantText;

/// Kind of switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SwitchKind {
    /// Open vSwitch with the userspace datapath and AF_XDP ports.
    OpenVSwitch,
}

/// Value of `switch`: a kind, or `{kind: …, tenants: …}`.
#[derive(Debug)]
pub(crate) struct SwitchText {
    /// Tenants by name.
    pub(crate) tenants: Entries<TenantText>,
}

/// A switch with tenants.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Switch")]
struct SwitchMap {
    /// Kind of switch.
    #[serde(rename = "kind")]
    _kind: SwitchKind,
    /// Tenants by name, as in a tenants file. Ports are named after the nodes that they lead to.
    #[serde(default)]
    tenants: Entries<TenantText>,
}

impl<'de> Deserialize<'de> for SwitchText {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = SwitchText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("openvswitch, or {kind: openvswitch, tenants: …}")
            }

            fn visit_str<E: de::Error>(self, kind: &str) -> Result<SwitchText, E> {
                SwitchKind::deserialize(StrDeserializer::new(kind))?;
                Ok(SwitchText { tenants: Entries::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SwitchText, A::Error> {
                let map = SwitchMap::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SwitchText { tenants: map.tenants })
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for SwitchText {
    fn schema_name() -> Cow<'static, str> {
        "SwitchOrKind".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kind = generator.subschema_for::<SwitchKind>();
        let map = generator.subschema_for::<SwitchMap>();
        json_schema!({"oneOf": [kind, map]})
    }
}
