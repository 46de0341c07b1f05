//! Grammar of an item of `events:` as serde types.

use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{self, Options};
use super::traffic::Size;
use super::units::Time;
use super::values::quantity::Family;
use crate::Bandwidth;

/// An event on a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// Time since the lab became ready.
    pub(super) at: Time,
    /// Name of the link.
    pub(super) link: String,
    /// Sending node of the affected direction; all directions if absent.
    pub(super) from: Option<String>,
    /// Time for which the link is down.
    pub(super) down: Option<Time>,
    /// True if the ends do not see that the link is down: packets are lost, but the carriers stay
    /// up.
    pub(super) silent: Option<bool>,
    /// New values of the link's options.
    #[schemars(schema_with = "options::of_event")]
    pub(super) set: Option<Options>,
    /// Cross traffic on the link.
    pub(super) traffic: Option<TrafficText>,
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficText {
    /// Rate in layer-2 bits per second; for `on-off` the rate during on periods.
    pub(super) rate: Bandwidth,
    /// Duration.
    pub(super) r#for: Time,
    /// Distribution of packets over time; constant if absent.
    pub(super) pattern: Option<PatternText>,
    /// Mean duration of on periods, for `on-off`.
    pub(super) on: Option<Time>,
    /// Mean duration of off periods, for `on-off`.
    pub(super) off: Option<Time>,
    /// Packet size in layer-2 bytes; 1000b if absent.
    pub(super) size: Option<Size>,
    /// Address family of the packets; IPv4 if absent.
    pub(super) family: Option<Family>,
}

/// Distribution of cross traffic packets over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PatternText {
    /// Constant gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Alternating periods with constant gaps and without packets, both of exponentially
    /// distributed duration.
    OnOff,
}
