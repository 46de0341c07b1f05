//! The grammar of one SID's behaviour as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};

use super::health::HealthText;
use super::steer_text::SteerText;
use crate::document::{Address, Items};

/// An endpoint behaviour (RFC 8986 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Behaviour {
    /// On to the next segment.
    End,
    /// On to the next segment, by a neighbour.
    #[serde(rename = "End.X")]
    EndX,
    /// On to the next segment, looked up in a table.
    #[serde(rename = "End.T")]
    EndT,
    /// Decapsulate a frame and send it by a port.
    #[serde(rename = "End.DX2")]
    EndDx2,
    /// Decapsulate an IPv4 packet and send it to a neighbour.
    #[serde(rename = "End.DX4")]
    EndDx4,
    /// Decapsulate an IPv6 packet and send it to a neighbour.
    #[serde(rename = "End.DX6")]
    EndDx6,
    /// Decapsulate an IPv4 packet and look it up.
    #[serde(rename = "End.DT4")]
    EndDt4,
    /// Decapsulate an IPv6 packet and look it up.
    #[serde(rename = "End.DT6")]
    EndDt6,
    /// Decapsulate a packet and look it up.
    #[serde(rename = "End.DT46")]
    EndDt46,
    /// On to the next segment, in an outer header.
    #[serde(rename = "End.B6.Encaps")]
    EndB6Encaps,
    /// On to the next segment; before that the inner packet passes this node's netfilter.
    #[serde(rename = "End.AN.NF")]
    EndAnNf,
    /// To a service function behind an interface; what comes back gets the policy's outer header.
    #[serde(rename = "End.AS")]
    EndAs,
    /// To a service function behind an interface; what comes back gets its own outer header again.
    #[serde(rename = "End.AD")]
    EndAd,
    /// To a service function behind an interface, with the SRH, as if to the last segment.
    #[serde(rename = "End.AM")]
    EndAm,
}

/// The behaviour of functions that are this node's netfilter.
pub const END_AN_NF: &str = Behaviour::EndAnNf.name();
/// The behaviours of service functions.
pub const FUNCTIONS: [&str; 4] =
    [END_AN_NF, Behaviour::EndAs.name(), Behaviour::EndAd.name(), Behaviour::EndAm.name()];

impl Behaviour {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::End => "End",
            Self::EndX => "End.X",
            Self::EndT => "End.T",
            Self::EndDx2 => "End.DX2",
            Self::EndDx4 => "End.DX4",
            Self::EndDx6 => "End.DX6",
            Self::EndDt4 => "End.DT4",
            Self::EndDt6 => "End.DT6",
            Self::EndDt46 => "End.DT46",
            Self::EndB6Encaps => "End.B6.Encaps",
            Self::EndAnNf => "End.AN.NF",
            Self::EndAs => "End.AS",
            Self::EndAd => "End.AD",
            Self::EndAm => "End.AM",
        }
    }
}

/// A variation of a behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Flavour {
    /// Penultimate segment pop (RFC 8986 section 4.16.1).
    #[serde(rename = "PSP")]
    Psp,
    /// Ultimate segment pop (section 4.16.2).
    #[serde(rename = "USP")]
    Usp,
    /// Ultimate segment decapsulation (section 4.16.3).
    #[serde(rename = "USD")]
    Usd,
    /// Several SIDs in one address (RFC 9800 section 4.1).
    #[serde(rename = "NEXT-C-SID")]
    NextCsid,
}

impl Flavour {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Psp => "PSP",
            Self::Usp => "USP",
            Self::Usd => "USD",
            Self::NextCsid => "NEXT-C-SID",
        }
    }
}

/// A behaviour with its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sid")]
pub(super) struct SidMap {
    /// The behaviour.
    pub(super) behaviour: Behaviour,
    /// The neighbour of End.X, End.DX4 and End.DX6.
    pub(super) next_hop: Option<Address>,
    /// The port of End.DX2.
    pub(super) port: Option<String>,
    /// The tenant in whose table End.T, End.DT4, End.DT6 and End.DT46 look up.
    pub(super) tenant: Option<String>,
    /// The number of the table, instead of a tenant.
    #[schemars(range(min = 1))]
    pub(super) table: Option<u32>,
    /// The VRF device of the table, instead of a tenant.
    pub(super) vrf: Option<String>,
    /// The policy of End.B6.Encaps, and that of what comes back to End.AS.
    pub(super) policy: Option<SteerText>,
    /// The policy by which this node's own answers to End.AN.NF's inner packets go; they are
    /// dropped when absent.
    pub(super) answers: Option<SteerText>,
    /// The tag that decapsulated packets leave with.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) vlan: Option<u32>,
    /// The inner tag of two that they leave with.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) inner: Option<u32>,
    /// Variations of the behaviour.
    #[serde(default)]
    pub(super) flavours: Items<Flavour>,
    /// The bits of the locator block, with NEXT-C-SID; 32 when absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) block: Option<u32>,
    /// The bits of the node and function, with NEXT-C-SID; 16 when absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) node: Option<u32>,
    /// The interface that End.AS, End.AD and End.AM send to their function by: no port of the data
    /// plane.
    pub(super) to: Option<String>,
    /// The interface that their function's packets come back by; `to` when absent.
    pub(super) back: Option<String>,
    /// The function's address on `to`, where it routes. When absent, frames are to anybody: the
    /// function is a bump in the wire.
    pub(super) via: Option<Address>,
    /// How it is found out whether a service function works.
    pub(super) health: Option<HealthText>,
}

/// What a SID does: the behaviour's name, or a map.
#[derive(Debug)]
pub(super) struct SidText(pub(super) SidMap);

impl<'de> Deserialize<'de> for SidText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = SidText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a behaviour such as End, or a map such as {behaviour: End.DX2, port: eth1}",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SidText, E> {
                let behaviour = Behaviour::deserialize(text.into_deserializer())?;
                Ok(SidText(SidMap {
                    behaviour,
                    next_hop: None,
                    port: None,
                    tenant: None,
                    table: None,
                    vrf: None,
                    policy: None,
                    answers: None,
                    vlan: None,
                    inner: None,
                    flavours: Items::default(),
                    block: None,
                    node: None,
                    to: None,
                    back: None,
                    via: None,
                    health: None,
                }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SidText, A::Error> {
                SidMap::deserialize(MapAccessDeserializer::new(map)).map(SidText)
            }
        }
        deserializer.deserialize_any(V)
    }
}

impl JsonSchema for SidText {
    fn schema_name() -> Cow<'static, str> {
        "SidOrBehaviour".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Behaviour>();
        let map = generator.subschema_for::<SidMap>();
        json_schema!({"anyOf": [name, map]})
    }
}
