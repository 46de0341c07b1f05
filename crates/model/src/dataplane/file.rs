//! The file's grammar as serde types; the JSON Schema is generated from the same types.

use std::str::FromStr;

use ipnet::{IpNet, Ipv6Net};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sid_text::SidText;
use super::steer_text::{PolicyText, SteerText};
use super::types::Mode;
use crate::Locator;
use crate::document::{Entries, Items, Prefix, Prefix6, from_text, prefix};
use crate::topology::Dataplane;

/// A Kaido data plane: ports, tenants, policies and SIDs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DataplaneFile")]
pub(super) struct FileText {
    /// The outer source address of what is encapsulated.
    pub(super) source: Option<Ipv6>,
    /// The prefixes that SIDs are taken from.
    #[serde(default)]
    pub(super) locators: Items<Locator>,
    /// The prefixes that SIDs may be addressed from; all when absent.
    #[serde(default)]
    pub(super) sources: Items<Prefix6>,
    /// What forwards; `xdp` when absent.
    pub(super) dataplane: Option<Dataplane>,
    /// Whether the kernel's own SRv6 routes are taken over; true when absent.
    pub(super) import: Option<bool>,
    /// Where the program runs, unless a port says otherwise; `auto` when absent.
    pub(super) mode: Option<Mode>,
    /// The interfaces that the program is attached to.
    pub(super) ports: Entries<PortText>,
    /// How much fits into the tables; by default what the file needs, and 4,096 at least.
    #[serde(default)]
    pub(super) limits: LimitsText,
    /// Policies that several prefixes may name.
    #[serde(default)]
    pub(super) policies: Entries<PolicyText>,
    /// Tenants, each with an address space of its own.
    #[serde(default)]
    pub(super) tenants: Entries<TenantText>,
    /// SIDs and their behaviours.
    #[serde(default)]
    pub(super) sids: Entries<SidText, SidPrefix>,
}

/// An interface.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Port")]
pub(super) struct PortText {
    /// Where the program runs.
    pub(super) mode: Option<Mode>,
    /// The tenant to whom frames without a tag belong.
    pub(super) tenant: Option<String>,
    /// The interface that packets for this port are sent into; the port itself when absent.
    pub(super) exit: Option<String>,
    /// Whether this node's SIDs can be reached from here; true when absent, and false where the SR
    /// domain ends.
    pub(super) sids: Option<bool>,
}

/// How much fits into the tables.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(super) struct LimitsText {
    /// SIDs.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) sids: Option<u32>,
    /// Prefixes of all tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) prefixes: Option<u32>,
    /// Policies: a named one counts once for each tenant that names it.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) policies: Option<u32>,
    /// Segment lists of all policies.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) lists: Option<u32>,
    /// Tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) tenants: Option<u32>,
    /// Packets that service functions hold, for each processor.
    #[schemars(range(min = 1, max = 16777216))]
    pub(super) held: Option<u32>,
}

/// A tenant.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tenant")]
pub(super) struct TenantText {
    /// The number of the routing table in which decapsulated packets are looked up.
    #[schemars(range(min = 1))]
    pub(super) table: Option<u32>,
    /// The VRF device in whose table they are looked up.
    pub(super) vrf: Option<String>,
    /// Whether the table may be without a default route, so that packets go on to the main table, where
    /// all SIDs are.
    pub(super) falls_through: Option<bool>,
    /// The prefixes that its packets may come from; all when absent.
    #[serde(default)]
    pub(super) sources: Items<Prefix>,
    /// The frames that belong to the tenant.
    #[serde(default)]
    pub(super) attachments: Items<AttachmentText>,
    /// The policy that takes its frames as they are (H.Encaps.L2).
    pub(super) frames: Option<SteerText>,
    /// The policies that take its packets, by destination (H.Encaps).
    #[serde(default)]
    pub(super) routes: Entries<SteerText, Prefix>,
}

/// Frames of a port: those with exactly these tags.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Attachment")]
pub(super) struct AttachmentText {
    /// The port.
    pub(super) port: String,
    /// The outer, or only, tag; none when absent.
    #[schemars(range(min = 1, max = 4094))]
    pub(super) vlan: Option<u32>,
    /// The inner tag of two.
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
            .map_err(|_| format!("`{text}` is no IPv6 address: write one such as fd00:0:2::1"))
    }
}
from_text!(Ipv6, "an IPv6 address such as fd00:0:2::1", r"^[0-9a-fA-F:.]+$");

/// A SID, or the prefix of one that has an argument.
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
            // YAML takes the last colon for its own.
            _ if format!("{text}:").parse::<std::net::Ipv6Addr>().is_ok() => {
                Err(format!("`{text}` is no SID: write \"{text}:\" in quotes, then a colon"))
            }
            _ => {
                Err(format!("`{text}` is no SID: write one such as fd00:0:1:1:: or fd00:1:1::/48"))
            }
        }
    }
}
from_text!(SidPrefix, "a SID such as fd00:0:1:1:: or fd00:1:1::/48", r"^[0-9a-fA-F:.]+(/[0-9]+)?$");

/// The JSON Schema of a data plane's file, for editors and checkers.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileText).to_value()
}
