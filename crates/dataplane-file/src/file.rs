//! The file's grammar as serde types. The JSON Schema is generated from the same types.

use document::{Entries, Items, Prefix, Prefix6};
use model::dataplane::{Dataplane, Mode};
use schemars::JsonSchema;
use serde::Deserialize;
use srv6::Locator;

use super::scalars::{Ipv6, SidPrefix};
use super::sid_text::SidText;
use super::steer_text::{PolicyText, SteerText};
use super::vlan_text::VlanText;

/// A Kaido data plane: ports, tenants, policies and SIDs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DataplaneFile")]
pub(crate) struct FileText {
    /// Outer source address of encapsulated packets.
    pub(crate) source: Option<Ipv6>,
    /// Prefixes that SIDs are allocated from.
    #[serde(default)]
    pub(crate) locators: Items<Locator>,
    /// Source prefixes that may address SIDs; all sources if absent.
    #[serde(default)]
    pub(crate) sources: Items<Prefix6>,
    /// The data plane that forwards packets; `xdp` if absent.
    pub(crate) dataplane: Option<Dataplane>,
    /// Import of the kernel SRv6 routes; true if absent.
    pub(crate) import: Option<bool>,
    /// Permits policies of form H.Insert, which change packets of others; false if
    /// absent.
    pub(crate) insert: Option<bool>,
    /// Default XDP mode of the ports; `auto` if absent.
    pub(crate) mode: Option<Mode>,
    /// Interfaces that the program is attached to.
    pub(crate) ports: Entries<PortText>,
    /// Capacities of the tables. The default is the number that the file needs, and at least 4,096.
    #[serde(default)]
    pub(crate) limits: LimitsText,
    /// Named policies, which several prefixes may refer to.
    #[serde(default)]
    pub(crate) policies: Entries<PolicyText>,
    /// Tenants, each with a separate address space.
    #[serde(default)]
    pub(crate) tenants: Entries<TenantText>,
    /// SIDs and their behaviors.
    #[serde(default)]
    pub(crate) sids: Entries<SidText, SidPrefix>,
}

/// A port: an interface of the data plane.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Port")]
pub(crate) struct PortText {
    /// XDP mode.
    pub(crate) mode: Option<Mode>,
    /// Tenant that owns untagged frames.
    pub(crate) tenant: Option<String>,
    /// Interface that packets for this port are redirected to; the port itself if absent.
    pub(crate) exit: Option<String>,
    /// Reachability of this node's SIDs in untagged frames of this port; true if absent. Set it to
    /// false at the edge of the SR domain.
    pub(crate) sids: Option<bool>,
    /// VLANs of this port in the SR domain, in whose frames SIDs are reachable too.
    #[serde(default)]
    pub(crate) vlans: Items<VlanText>,
}

/// Capacities of the tables.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(crate) struct LimitsText {
    /// Number of SIDs.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) sids: Option<u32>,
    /// Number of prefixes of all tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) prefixes: Option<u32>,
    /// Number of policies. A named policy counts once per tenant that refers to it.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) policies: Option<u32>,
    /// Number of segment lists of all policies.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) lists: Option<u32>,
    /// Number of tenants.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) tenants: Option<u32>,
    /// Number of packets in service functions, per CPU.
    #[schemars(range(min = 1, max = 16777216))]
    pub(crate) held: Option<u32>,
}

/// A tenant.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tenant")]
pub(crate) struct TenantText {
    /// Number of the routing table for decapsulated packets.
    #[schemars(range(min = 1))]
    pub(crate) table: Option<u32>,
    /// VRF device with the routing table for decapsulated packets.
    pub(crate) vrf: Option<String>,
    /// Permits a table without a default route. Lookups then continue in the main table, which has
    /// all SIDs.
    pub(crate) falls_through: Option<bool>,
    /// Permitted source prefixes of its packets; all sources if absent.
    #[serde(default)]
    pub(crate) sources: Items<Prefix>,
    /// Frames that belong to the tenant.
    #[serde(default)]
    pub(crate) attachments: Items<AttachmentText>,
    /// Policy for whole frames (H.Encaps.L2).
    pub(crate) frames: Option<SteerText>,
    /// Policies by destination prefix (H.Encaps).
    #[serde(default)]
    pub(crate) routes: Entries<SteerText, Prefix>,
}

/// Frames of a port with exactly these tags.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Attachment")]
pub(crate) struct AttachmentText {
    /// The port.
    pub(crate) port: String,
    /// The outer, or only, tag; none if absent.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) vlan: Option<u32>,
    /// The inner of two tags.
    #[schemars(range(min = 1, max = 4094))]
    pub(crate) inner: Option<u32>,
}

/// Returns the JSON Schema of a data plane file, for editors and validators.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(FileText).to_value()
}
