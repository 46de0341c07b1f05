//! `kaido dataplane` and `kaido function`: SRv6 on this machine's ports, and service functions.

use schemars::JsonSchema;
use serde::Serialize;

/// A valid data plane file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckedFile {
    /// Always true; a file with mistakes is an error.
    pub ok: bool,
}

/// Changes of the data plane, made or planned.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DataplaneChanges {
    /// The changes, in words.
    pub changes: Vec<String>,
    /// Number of further changes that are not listed.
    pub more: u64,
    /// Summary of all changes.
    pub summary: String,
    /// Warnings about the file.
    pub warnings: Vec<String>,
}

/// The data plane has ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DetachedDataplane {
    /// Always true.
    pub detached: bool,
}

/// The data plane with its counters. `kaido dataplane top` prints packets and bytes per second
/// instead of totals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplaneState {
    /// `xdp` or `kernel`.
    pub dataplane: String,
    /// Ports.
    pub ports: Vec<DataplanePort>,
    /// SIDs.
    pub sids: Vec<DataplaneEntry>,
    /// Policies.
    pub policies: Vec<DataplaneEntry>,
    /// Tenants.
    pub tenants: Vec<DataplaneTenant>,
    /// Prefixes that may address SIDs; empty for all.
    pub sources: Vec<String>,
    /// Places where the SR domain is open.
    pub warnings: Vec<String>,
    /// Number of entries imported from the kernel's routes.
    pub imported: u64,
    /// SRv6 routes that remain in the kernel.
    pub left: Vec<DataplaneLeft>,
    /// Packets that were not forwarded, by reason.
    pub reasons: Vec<DataplaneReason>,
}

/// A port of the data plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplanePort {
    /// Interface name.
    pub name: String,
    /// XDP mode: `native` or `generic`.
    pub mode: String,
    /// True if the kernel requires an HMAC on the interface.
    pub requires_hmac: bool,
    /// True at the edge of the SR domain.
    pub edge: bool,
    /// VLANs in the SR domain: `100`, or `200/10` with two tags.
    pub vlans: Vec<String>,
    /// Present name of the interface, if it has been renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_to: Option<String>,
}

/// A SID or a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplaneEntry {
    /// Prefix of the SID, or name of the policy.
    pub name: String,
    /// Action in the file's syntax.
    pub action: String,
    /// Packets; null if they are not counted.
    pub packets: Option<u64>,
    /// Layer-3 bytes, as received; null if they are not counted.
    pub bytes: Option<u64>,
    /// Packets that came back from a service function; null if it is not one.
    pub returned: Option<u64>,
    /// Packets that a service function dropped, if this kernel reports drops.
    pub dropped: Option<FunctionDrops>,
    /// Health of a service function with a check.
    pub health: Option<FunctionHealth>,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplaneTenant {
    /// Tenant name.
    pub name: String,
    /// Traffic that was encapsulated.
    pub encapsulated: Traffic,
    /// Traffic that was decapsulated.
    pub decapsulated: Traffic,
}

/// Packets and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TenantTraffic")]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A route that is left to the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplaneLeft {
    /// Destination prefix.
    pub destination: String,
    /// The reason, in words.
    pub reason: String,
}

/// Packets that were not forwarded for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DataplaneReason {
    /// Name of the reason.
    pub reason: String,
    /// Description.
    pub text: String,
    /// Packets that were passed to the kernel.
    pub passed: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// A service function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ServiceFunction {
    /// Prefix of its SID.
    pub sid: String,
    /// Action in the file's syntax.
    pub action: String,
    /// Packets that went into the function.
    #[serde(rename = "in")]
    pub into: Option<u64>,
    /// Packets that came back.
    pub out: Option<u64>,
    /// Packets that the function dropped, if this kernel reports drops.
    pub dropped: Option<FunctionDrops>,
    /// Health; null without a check.
    pub health: Option<FunctionHealth>,
}

/// Packets that netfilter dropped, by hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FunctionDrops {
    /// Packets dropped at prerouting.
    pub prerouting: u64,
    /// Packets dropped at forward.
    pub forward: u64,
    /// Packets dropped at postrouting.
    pub postrouting: u64,
    /// Packets that the kernel dropped for reasons of its own.
    pub no_hook: u64,
}

/// Health of a service function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FunctionHealth {
    /// True if the SID is announced.
    pub up: bool,
    /// Age of this state, as far as the daemon knows, in milliseconds.
    pub for_ms: u64,
    /// Number of consecutive runs with the same result as the last one.
    pub in_a_row: u32,
    /// Number of runs of the check.
    pub runs: u64,
    /// Number of runs that failed.
    pub failures: u64,
    /// Number of runs that could not be started for lack of resources; they change nothing.
    pub not_started: u64,
    /// The reason that the last run failed, with the end of its output; null if it succeeded.
    pub failure: Option<String>,
}

/// A packet in a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TracedPacket {
    /// Time of arrival on the monotonic clock, in nanoseconds.
    pub at_ns: u64,
    /// Port of arrival.
    pub port: String,
    /// Headers, outermost first.
    pub headers: String,
    /// The matching SID or policy; empty if none matched.
    pub entry: String,
    /// `sent`, `left to the kernel` or `dropped`.
    pub verdict: String,
    /// The reason that it was not sent, as `reasons` of `kaido dataplane show` names it.
    pub reason: String,
    /// Headers of the packet that was sent; empty if none was.
    pub sent: String,
    /// Bytes of the packet, in hexadecimal.
    pub frame: String,
    /// Bytes of the packet that was sent, in hexadecimal.
    pub sent_frame: String,
}
