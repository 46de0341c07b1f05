//! Grammar of a router's service function as serde types.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use dataplane_file::HealthText;

/// A service function: inner packets traverse this node's netfilter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Function")]
pub(crate) struct FunctionText {
    /// Argument of the SID, which becomes the packets' mark; 0 if absent.
    pub(crate) mark: Option<Mark>,
    /// Length of the argument in bits; 16 if absent.
    #[schemars(range(max = 32))]
    pub(crate) bits: Option<u8>,
    /// Rules that are loaded with `nft -f` when the lab starts.
    pub(crate) rules: Option<String>,
    /// File that contains the rules instead, relative to this one.
    pub(crate) file: Option<String>,
    /// Health check of the function.
    pub(crate) health: Option<HealthText>,
}

/// A mark, such as 7 or 0x1111.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(pub(crate) u32);

impl FromStr for Mark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => text.parse(),
        };
        number.map(Self).map_err(|_| {
            format!("`{text}` is not a mark: write a number of up to 32 bits, such as 7 or 0x1111")
        })
    }
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Mark {
    fn schema_name() -> Cow<'static, str> {
        "Mark".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A mark such as 7 or 0x1111",
            // Both are numbers in YAML.
            "oneOf": [
                {"type": "integer", "minimum": 0, "maximum": u32::MAX},
                {"type": "string", "pattern": "^([0-9]+|0x[0-9a-fA-F]+)$"},
            ],
        })
    }
}
