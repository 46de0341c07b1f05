//! The file's grammar as serde types. The JSON Schema is generated from the same types.

use std::str::FromStr;

use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::Deserialize;
use srv6::Locator;

use super::behaviors::SidText;
use super::steer_text::{PolicyText, SteerText};
use super::types::Mode;
use crate::document::{Entries, Items, Prefix, Prefix6, from_text, prefix};
use crate::topology::Dataplane;

/// A Kaido data plane: ports, tenants, policies and SIDs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DataplaneFile")]
pub(super) struct FileText {
    /// Outer source address of encapsulated packets.
    pub(super) source: Option<Ipv6>,
    /// Prefixes that SIDs are allocated from.
    #[serde(default)]
    pub(super) locators: Items<Locator>,
    /// Source prefixes that may address SIDs; all sources if absent.
    #[serde(default)]
    pub(super) sources: Items<Prefix6>,
    /// The data plane that forwards packets; `xdp` if absent.
    pub(super) dataplane: Option<Dataplane>,
    /// Import of the kernel's own SRv6 routes; true if absent.
    pub(super) import: Option<bool>,
    /// Default XDP mode of the ports; `auto` if absent.
    pub(super) mode: Option<Mode>,
    /// Interfaces that the program is attached to.
    pub(super) ports: Entries<PortText>,
    /// Capacities of the tables. The default is the number that the file needs, and at least 4,096.
    #[serde(default)]
    pub(super) limits: LimitsText,
    /// Named policies, which several prefixes may refer to.
    #[serde(default)]
    pub(super) policies: Entries<PolicyText>,
    /// Tenants, each with a separate address space.
    #[serde(default)]
    pub(super) tenants: Entries<TenantText>,
    /// SIDs and their behaviors.
    #[serde(default)]
    pub(super) sids: Entries<SidText, SidPrefix>,
}

/// A port: an interface of the data plane.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Port")]
pub(super) struct PortText {
    /// XDP mode.
    pub(super) mode: Option<Mode>,
    /// Tenant that owns untagged frames.
    pub(super) tenant: Option<String>,
    /// Interface that packets for this port are redirected to; the port itself if absent.
    pub(super) exit: Option<String>,
    /// Reachability of this node's SIDs from this port; true if absent. Set it to false at the edge
    /// of the SR domain.
    pub(super) sids: Option<bool>,
}

/// Capacities of the tables.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(super) struct LimitsText {
    /// Number of SIDs.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) sids: Option<u32>,
    /// Number of prefixes of all tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) prefixes: Option<u32>,
    /// Number of policies. A named policy counts once per tenant that refers to it.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) policies: Option<u32>,
    /// Number of segment lists of all policies.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) lists: Option<u32>,
    /// Number of tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) tenants: Option<u32>,
    /// Number of packets in service functions, per CPU.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) held: Option<u32>,
}

/// A tenant.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tenant")]
pub(super) struct TenantText {
    /// Number of the routing table for decapsulated packets.
    #[schemars(range(min = 1))]
    pub(super) table: Option<u32>,
    /// VRF device with the routing table for decapsulated packets.
    pub(super) vrf: Option<String>,
    /// Permits a table without a default route. Lookups then continue in the main table, which has
    /// all SIDs.
    pub(super) falls_through: Option<bool>,
    /// Permitted source prefixes of its packets; all sources if absent.
    #[serde(default)]
    pub(super) sources: Items<Prefix>,
    /// Frames that belong to the tenant.
    #[serde(default)]
    pub(super) attachments: Items<AttachmentText>,
    /// Policy for whole frames (H.Encaps.L2).
    pub(super) frames: Option<SteerText>,
    /// Policies by destination prefix (H.Encaps).
    #[serde(default)]
    pub(super) routes: Entries<SteerText, Prefix>,
}

/// Frames of a port with exactly these tags.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Attachment")]
pub(super) struct AttachmentText {
    /// The port.
    pub(super) port: String,
    /// The outer, or only, tag; none if absent.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) vlan: Option<u32>,
    /// The inner of two tags.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) inner: Option<u32>,
}

/// An IPv6 address.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ipv6(pub(super) std::net::Ipv6Addr);

impl FromStr for Ipv6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("`{text}` is not an IPv6 address: write one such as fd00:0:2::1"))
    }
}
from_text!(Ipv6, "an IPv6 address such as fd00:0:2::1", r"^[0-9a-fA-F:.]+$");

/// A SID, or its prefix if it has an argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct SidPrefix(pub(super) Ipv6Net);

impl FromStr for SidPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
            return Ok(Self(address.into()));
        }
        match prefix(text, "fd00:0:1:1:: or fd00:1:1::/48") {
            Ok(IpNet::V6(prefix)) => Ok(Self(prefix)),
            Err(error) if text.contains('/') => Err(error),
            // YAML takes the last colon as its own syntax.
            _ if format!("{text}:").parse::<std::net::Ipv6Addr>().is_ok() => {
                Err(format!("`{text}` is not a SID: write \"{text}:\" in quotes, then a colon"))
            }
            _ => Err(format!(
                "`{text}` is not a SID: write one such as fd00:0:1:1:: or fd00:1:1::/48"
            )),
        }
    }
}
from_text!(SidPrefix, "a SID such as fd00:0:1:1:: or fd00:1:1::/48", r"^[0-9a-fA-F:.]+(/[0-9]+)?$");

/// Returns the JSON Schema of a data plane's file, for editors and validators.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileText).to_value()
}
