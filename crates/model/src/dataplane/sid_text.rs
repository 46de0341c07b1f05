//! The grammar of a SID's behavior, as serde types.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};

use super::health::HealthText;
use super::steer_text::SteerText;
use crate::document::{Address, Items};

/// An endpoint behavior (RFC 8986 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Behavior {
    /// Forwards to the next segment.
    End,
    /// Forwards to the next segment through a neighbour.
    #[serde(rename = "End.X")]
    EndX,
    /// Forwards to the next segment, which is looked up in a table.
    #[serde(rename = "End.T")]
    EndT,
    /// Decapsulates a frame and sends it on a port.
    #[serde(rename = "End.DX2")]
    EndDx2,
    /// Decapsulates an IPv4 packet and sends it to a neighbour.
    #[serde(rename = "End.DX4")]
    EndDx4,
    /// Decapsulates an IPv6 packet and sends it to a neighbour.
    #[serde(rename = "End.DX6")]
    EndDx6,
    /// Decapsulates an IPv4 packet and looks it up.
    #[serde(rename = "End.DT4")]
    EndDt4,
    /// Decapsulates an IPv6 packet and looks it up.
    #[serde(rename = "End.DT6")]
    EndDt6,
    /// Decapsulates a packet and looks it up.
    #[serde(rename = "End.DT46")]
    EndDt46,
    /// Forwards to the next segment with an additional outer header.
    #[serde(rename = "End.B6.Encaps")]
    EndB6Encaps,
    /// Passes the inner packet through this node's netfilter, then forwards to the next segment.
    #[serde(rename = "End.AN.NF")]
    EndAnNf,
    /// Sends packets to a service function behind an interface. Returning packets get the policy's
    /// outer header.
    #[serde(rename = "End.AS")]
    EndAs,
    /// Sends packets to a service function behind an interface. Returning packets get their own
    /// outer header back.
    #[serde(rename = "End.AD")]
    EndAd,
    /// Sends packets to a service function behind an interface, with their SRH and with the last
    /// segment as destination.
    #[serde(rename = "End.AM")]
    EndAm,
}

/// The behavior of functions in this node's netfilter.
pub const END_AN_NF: &str = Behavior::EndAnNf.name();
/// The behaviors of service functions.
pub const FUNCTIONS: [&str; 4] =
    [END_AN_NF, Behavior::EndAs.name(), Behavior::EndAd.name(), Behavior::EndAm.name()];

impl Behavior {
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

/// A flavor of a behavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Flavor {
    /// Penultimate Segment Pop (RFC 8986 section 4.16.1).
    #[serde(rename = "PSP")]
    Psp,
    /// Ultimate Segment Pop (section 4.16.2).
    #[serde(rename = "USP")]
    Usp,
    /// Ultimate Segment Decapsulation (section 4.16.3).
    #[serde(rename = "USD")]
    Usd,
    /// Several compressed SIDs in one address (RFC 9800 section 4.1).
    #[serde(rename = "NEXT-C-SID")]
    NextCsid,
}

impl Flavor {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Psp => "PSP",
            Self::Usp => "USP",
            Self::Usd => "USD",
            Self::NextCsid => "NEXT-C-SID",
        }
    }
}

/// A behavior with its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sid")]
pub(super) struct SidMap {
    /// The behavior.
    pub(super) behavior: Behavior,
    /// Next hop of End.X, End.DX4 and End.DX6.
    pub(super) next_hop: Option<Address>,
    /// Port of End.DX2.
    pub(super) port: Option<String>,
    /// Tenant in whose table End.T, End.DT4, End.DT6 and End.DT46 look up packets.
    pub(super) tenant: Option<String>,
    /// Number of the table, instead of a tenant.
    #[schemars(range(min = 1))]
    pub(super) table: Option<u32>,
    /// VRF device of the table, instead of a tenant.
    pub(super) vrf: Option<String>,
    /// Policy of End.B6.Encaps, or for packets that return to End.AS.
    pub(super) policy: Option<SteerText>,
    /// Return policy for local replies to inner packets of End.AN.NF. They are dropped if it is
    /// absent.
    pub(super) answers: Option<SteerText>,
    /// VLAN tag of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) vlan: Option<u32>,
    /// Inner of two VLAN tags of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) inner: Option<u32>,
    /// Flavors of the behavior.
    #[serde(default)]
    pub(super) flavors: Items<Flavor>,
    /// Length of the NEXT-C-SID locator block in bits; 32 if absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) block: Option<u32>,
    /// Length of the NEXT-C-SID node and function in bits; 16 if absent.
    #[schemars(range(min = 8, max = 120))]
    pub(super) node: Option<u32>,
    /// Interface on which End.AS, End.AD and End.AM send packets to the function (IFACE-OUT). It
    /// must not be a port of the data plane.
    pub(super) to: Option<String>,
    /// Interface on which packets of the function return (IFACE-IN); `to` if absent.
    pub(super) back: Option<String>,
    /// Address of the function on `to` (NH-ADDR), if it routes. If absent, the function is a bump
    /// in the wire and accepts any destination MAC address.
    pub(super) via: Option<Address>,
    /// Health check of the service function.
    pub(super) health: Option<HealthText>,
}

/// A SID's behavior: its name, or a map.
#[derive(Debug)]
pub(super) struct SidText(pub(super) SidMap);

impl<'de> Deserialize<'de> for SidText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = SidText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a behavior such as End, or a map such as {behavior: End.DX2, port: eth1}",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SidText, E> {
                let behavior = Behavior::deserialize(text.into_deserializer())?;
                Ok(SidText(SidMap {
                    behavior,
                    next_hop: None,
                    port: None,
                    tenant: None,
                    table: None,
                    vrf: None,
                    policy: None,
                    answers: None,
                    vlan: None,
                    inner: None,
                    flavors: Items::default(),
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
        "SidOrBehavior".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Behavior>();
        let map = generator.subschema_for::<SidMap>();
        json_schema!({"anyOf": [name, map]})
    }
}
