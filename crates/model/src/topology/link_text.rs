//! Grammar of an item of `links:` as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use super::backend::Engine;
use super::impairments::{self, Share};
use super::units::{JitterText, Percent, QueueText, Time};
use crate::document::{Prefix4, Prefix6, PrefixOrAddress};
use crate::{Bandwidth, PortRange, Protocol};

/// Options of one direction of a link.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Direction {
    /// Rate limit in layer-2 bits per second.
    pub(super) rate: Option<Bandwidth>,
    /// Queue at the rate limit.
    pub(super) queue: Option<QueueText>,
    /// IGP cost; never derived from the rate.
    #[schemars(range(min = 1))]
    pub(super) cost: Option<u16>,
    /// Added delay.
    pub(super) delay: Option<Time>,
    /// Delay variation.
    pub(super) jitter: Option<JitterOption>,
    /// Packet loss.
    pub(super) loss: Option<Loss>,
    /// Fraction of packets that overtake others.
    pub(super) reorder: Option<Percent>,
    /// Fraction of packets that are duplicated.
    pub(super) duplicate: Option<Percent>,
    /// Fraction of packets with a corrupted bit.
    pub(super) corrupt: Option<Percent>,
    /// File of packet departure times.
    pub(super) trace: Option<String>,
    /// Filters for packets to drop.
    pub(super) filter: Option<Vec<Filter>>,
}

/// A filter for packets to drop.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Source prefix.
    pub(super) from: Option<PrefixOrAddress>,
    /// Destination prefix.
    pub(super) to: Option<PrefixOrAddress>,
    /// Transport protocol.
    pub(super) protocol: Option<Protocol>,
    /// Destination ports.
    pub(super) ports: Option<PortRange>,
}

/// Delay variation: `2ms normal`, or a file.
#[derive(Debug, Clone)]
pub(super) enum JitterOption {
    /// A named distribution.
    Spread(impairments::Jitter),
    /// A file of additional delays.
    File(String),
}

impl JitterOption {
    pub(super) fn spread(&self) -> Option<impairments::Jitter> {
        match self {
            Self::Spread(jitter) => Some(*jitter),
            Self::File(_) => None,
        }
    }

    pub(super) fn file(&self) -> Option<String> {
        match self {
            Self::Spread(_) => None,
            Self::File(file) => Some(file.clone()),
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
pub(super) struct Loss(pub(super) impairments::Loss);

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
                Ok(Loss(impairments::Loss::Independent(share)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let map = LossMap::deserialize(MapAccessDeserializer::new(map))?;
                let GilbertElliott { p, r, bad, good } = map.gilbert_elliott;
                let share = |given: Option<Percent>, otherwise| given.map_or(otherwise, |p| p.0);
                let (bad, good) = (share(bad, Share::ALL), share(good, Share::NONE));
                Ok(Loss(impairments::Loss::GilbertElliott { p: p.0, r: r.0, bad, good }))
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

/// Options of a link or a LAN.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkBody {
    /// Members of a LAN.
    pub(super) nodes: Option<Vec<String>>,
    /// Inner MTU: size of the largest packet that hosts send over this link, without SRv6 headers.
    #[schemars(range(min = 1280, max = 9000))]
    pub(super) mtu: Option<u16>,
    /// IPv4 prefix of the link.
    pub(super) ipv4: Option<Prefix4>,
    /// IPv6 prefix of the link.
    pub(super) ipv6: Option<Prefix6>,
    /// Rate limit in layer-2 bits per second.
    pub(super) rate: Option<Bandwidth>,
    /// Queue at the rate limit.
    pub(super) queue: Option<QueueText>,
    /// IGP cost; never derived from the rate.
    #[schemars(range(min = 1))]
    pub(super) cost: Option<u16>,
    /// Added delay.
    pub(super) delay: Option<Time>,
    /// Delay variation.
    pub(super) jitter: Option<JitterOption>,
    /// Packet loss.
    pub(super) loss: Option<Loss>,
    /// Fraction of packets that overtake others.
    pub(super) reorder: Option<Percent>,
    /// Fraction of packets that are duplicated.
    pub(super) duplicate: Option<Percent>,
    /// Fraction of packets with a corrupted bit.
    pub(super) corrupt: Option<Percent>,
    /// File of packet departure times.
    pub(super) trace: Option<String>,
    /// Filters for packets to drop.
    pub(super) filter: Option<Vec<Filter>>,
    /// Backend of the link: `true` for the emulator even if a kernel link would suffice, `netem`
    /// for the kernel's netem.
    pub(super) engine: Option<Engine>,
    /// Different options for the direction from the second node to the first.
    pub(super) reverse: Option<Direction>,
}

impl LinkBody {
    /// Options of the direction from the first node to the second.
    pub(super) fn forward(&self) -> Direction {
        Direction {
            rate: self.rate,
            queue: self.queue.clone(),
            cost: self.cost,
            delay: self.delay,
            jitter: self.jitter.clone(),
            loss: self.loss,
            reorder: self.reorder,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            trace: self.trace.clone(),
            filter: self.filter.clone(),
        }
    }
}

/// An item of `links:`: `a-b`, `a-b: {…}`, `lan: [a, b, c]` or `lan: {nodes: [a, b, c], …}`.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) body: LinkBody,
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
                Ok(Link { name: name.into(), body: LinkBody::default() })
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
        let body = generator.subschema_for::<LinkBody>();
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
struct Body(LinkBody);

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Body;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("options such as {rate: 1gbit}, or the list of a LAN's nodes")
            }

            fn visit_unit<E>(self) -> Result<Body, E> {
                Ok(Body(LinkBody::default()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Body, A::Error> {
                let mut nodes = Vec::new();
                while let Some(node) = items.next_element()? {
                    nodes.push(node);
                }
                Ok(Body(LinkBody { nodes: Some(nodes), ..LinkBody::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Body, A::Error> {
                LinkBody::deserialize(MapAccessDeserializer::new(map)).map(Body)
            }
        }
        deserializer.deserialize_any(V)
    }
}
