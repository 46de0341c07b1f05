//! The grammar of a SID's behavior and its arguments, as serde types.

use std::borrow::Cow;
use std::fmt;

use document::{Address, Entries, Items};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, MapAccess, Visitor};
use srv6::{Flavor, Kind, PduSession};

use super::health_text::HealthText;
use super::steer_text::SteerText;

/// A behavior with its arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sid")]
pub(crate) struct SidMap {
    /// The behavior.
    pub(crate) behavior: Kind,
    /// Next hop of End.X, End.DX4 and End.DX6.
    pub(crate) next_hop: Option<Address>,
    /// Port of End.DX2.
    pub(crate) port: Option<String>,
    /// Ports of End.DX2V, by the VLAN of the inner frame.
    pub(crate) vlans: Option<Entries<String>>,
    /// Tenant in whose table End.T, End.DT4, End.DT6 and End.DT46 look up packets.
    pub(crate) tenant: Option<String>,
    /// Number of the table, instead of a tenant.
    #[schemars(range(min = 1))]
    pub(crate) table: Option<u32>,
    /// VRF device of the table, instead of a tenant.
    pub(crate) vrf: Option<String>,
    /// Policy of End.B6.Encaps, or for packets that return to End.AS.
    pub(crate) policy: Option<SteerText>,
    /// Return policy for local replies to inner packets of End.AN.NF. They are dropped if it is
    /// absent.
    pub(crate) answers: Option<SteerText>,
    /// VLAN tag of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) vlan: Option<u32>,
    /// Inner of two VLAN tags of decapsulated packets.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) inner: Option<u32>,
    /// Flavors of the behavior.
    #[serde(default)]
    pub(crate) flavors: Items<Flavor>,
    /// Length of the locator block of compressed SIDs in bits; if absent 32 for NEXT-C-SID, and the rest
    /// of the SID's prefix for REPLACE-C-SID.
    #[schemars(range(min = 8, max = 120))]
    pub(crate) block: Option<u32>,
    /// Length of node and function of compressed SIDs in bits; if absent 16 for NEXT-C-SID, 32 for
    /// REPLACE-C-SID.
    #[schemars(range(min = 8, max = 120))]
    pub(crate) node: Option<u32>,
    /// Interface on which End.AS, End.AD and End.AM send packets to the function (IFACE-OUT). It
    /// must not be a port of the data plane.
    pub(crate) to: Option<String>,
    /// Interface on which packets of the function return (IFACE-IN); `to` if absent.
    pub(crate) back: Option<String>,
    /// Address of the function on `to` (NH-ADDR), if it routes. If absent, the function is a bump
    /// in the wire and accepts any destination MAC address.
    pub(crate) via: Option<Address>,
    /// Health check of the service function.
    pub(crate) health: Option<HealthText>,
    /// Position in bits of the IPv4 source in the source of packets to End.M.GTP4.E; 64 if absent.
    #[schemars(range(min = 8, max = 96))]
    pub(crate) source_args: Option<u32>,
    /// Direction in the PDU Session Containers of End.M.GTP4.E and End.M.GTP6.E; if absent, packets have
    /// no container.
    pub(crate) pdu_session: Option<PduSession>,
}

/// A SID's behavior: its name, or a map.
#[derive(Debug)]
pub(crate) struct SidText(pub(crate) SidMap);

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
                let behavior = Kind::deserialize(text.into_deserializer())?;
                Ok(SidText(SidMap {
                    behavior,
                    next_hop: None,
                    port: None,
                    vlans: None,
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
                    source_args: None,
                    pdu_session: None,
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
        let name = generator.subschema_for::<Kind>();
        let map = generator.subschema_for::<SidMap>();
        json_schema!({"anyOf": [name, map]})
    }
}
