//! Grammar of an item of `events:` as serde types.

use document::Time;
use model::Bandwidth;
use model::topology::Family;
use schemars::JsonSchema;
use serde::Deserialize;

use super::options::{self, Options};
use super::traffic_text::Size;

/// An event on a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    /// Time since the lab became ready.
    pub(crate) at: Time,
    /// Name of the link.
    pub(crate) link: String,
    /// Sending node of the affected direction; all directions if absent.
    pub(crate) from: Option<String>,
    /// Time for which the link is down.
    pub(crate) down: Option<Time>,
    /// True if the ends do not see that the link is down: packets are lost, but the carriers stay
    /// up.
    pub(crate) silent: Option<bool>,
    /// New values of the link's options.
    #[schemars(schema_with = "options::of_event")]
    pub(crate) set: Option<Options>,
    /// Cross traffic on the link.
    pub(crate) traffic: Option<TrafficText>,
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficText {
    /// Rate in layer-2 bits per second; for `on-off` the rate during on periods.
    pub(crate) rate: Bandwidth,
    /// Duration.
    pub(crate) r#for: Time,
    /// Distribution of packets over time; constant if absent.
    pub(crate) pattern: Option<PatternText>,
    /// Mean duration of on periods, for `on-off`.
    pub(crate) on: Option<Time>,
    /// Mean duration of off periods, for `on-off`.
    pub(crate) off: Option<Time>,
    /// Packet size in layer-2 bytes; 1000b if absent.
    pub(crate) size: Option<Size>,
    /// Address family of the packets; IPv4 if absent.
    pub(crate) family: Option<Family>,
}

/// Distribution of cross traffic packets over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PatternText {
    /// Constant gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Alternating periods with constant gaps and without packets, both of exponentially
    /// distributed duration.
    OnOff,
}
