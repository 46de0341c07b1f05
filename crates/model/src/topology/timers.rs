//! Timers of routing protocols.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity::{DurationText, duration_text};

/// Timers of routing protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Timers {
    /// OSPF, for both families.
    pub ospf: OspfTimers,
    /// IS-IS.
    pub isis: IsisTimers,
    /// RIP and RIPng.
    pub rip: RipTimers,
    /// BGP.
    pub bgp: BgpTimers,
}

/// IS-IS timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IsisTimers {
    /// Hello interval, in whole seconds.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub hello: Duration,
    /// Holding time: timeout for a silent neighbor, 2 to 100 times `hello`.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub hold: Duration,
    /// True if BFD monitors neighbors.
    pub bfd: bool,
}

/// RIP and RIPng timers, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RipTimers {
    /// Interval between periodic updates.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub update: Duration,
    /// Timeout for a route that is not refreshed.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,
    /// Garbage-collection time: time for which an expired route is still announced as unreachable.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub garbage: Duration,
}

/// BGP timers, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BgpTimers {
    /// Keepalive interval.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub keepalive: Duration,
    /// Hold time: timeout for a silent neighbor.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub hold: Duration,
    /// True if BFD monitors neighbors.
    pub bfd: bool,
}

/// OSPF timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OspfTimers {
    /// Hello interval, in whole seconds.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub hello: Duration,
    /// Dead interval: timeout for a silent neighbor, in whole seconds; greater than `hello`.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub dead: Duration,
    /// True if BFD monitors neighbors.
    pub bfd: bool,
}
