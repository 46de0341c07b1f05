//! Grammar of an item of `links:` as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use super::options::Options;

/// An item of `links:`: `a-b`, `a-b: {…}`, `lan: [a, b, c]` or `lan: {nodes: [a, b, c], …}`.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) body: Options,
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Link;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link such as `r1-r2`, `r1-r2: {rate: 1gbit}` or `lan0: [r1, h1]`")
            }

            fn visit_str<E>(self, name: &str) -> Result<Link, E> {
                Ok(Link { name: name.into(), body: Options::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Link, A::Error> {
                let error = |text: &str| Err(de::Error::custom(text));
                let Some(name) = map.next_key::<String>()? else {
                    return error("this link has no name: write `r1-r2` or `lan0: [r1, h1]`");
                };
                let body = map.next_value::<Body>()?.0;
                match map.next_key::<String>()? {
                    None => Ok(Link { name, body }),
                    Some(_) => error(
                        "this link has a second key beside its name: write `- r1-r2: {rate: 1gbit}` \
                         with the options in braces, or indent them below the name",
                    ),
                }
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for Link {
    fn schema_name() -> Cow<'static, str> {
        "Link".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let body = generator.subschema_for::<Options>();
        json_schema!({
            "description": "a-b, a-b: {…}, lan: [a, b, c] or lan: {nodes: [a, b, c], …}",
            "oneOf": [
                {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*-[A-Za-z][A-Za-z0-9_]*$"},
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "additionalProperties": {
                        "oneOf": [
                            {"type": "array", "items": {"type": "string"}},
                            {"type": "null"},
                            body,
                        ],
                    },
                },
            ],
        })
    }
}

/// Members of a LAN, or options of a link.
struct Body(Options);

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Body;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options such as {rate: 1gbit}, or the list of a LAN's nodes")
            }

            fn visit_unit<E>(self) -> Result<Body, E> {
                Ok(Body(Options::default()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Body, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = items.next_element()? {
                    nodes.push(node);
                }
                Ok(Body(Options { nodes: Some(nodes), ..Options::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Body, A::Error> {
                Options::deserialize(MapAccessDeserializer::new(map)).map(Body)
            }
        }
        deserializer.deserialize_any(V)
    }
}
