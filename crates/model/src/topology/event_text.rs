//! The grammar of one item of `events:` as serde types.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link_text::Direction;
use super::test::Family;
use super::traffic::Size;
use super::units::Time;
use crate::Bandwidth;

/// Something that happens to a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    /// When, counted from the moment the lab is ready.
    pub(super) at: Time,
    /// Which link.
    pub(super) link: String,
    /// The node whose sending it is about; all of the link's when absent.
    pub(super) from: Option<String>,
    /// For how long the link is down.
    pub(super) down: Option<Time>,
    /// Whether no end sees that it is down: packets are lost, and carriers stay.
    pub(super) silent: Option<bool>,
    /// What the link's options become.
    pub(super) set: Option<Direction>,
    /// Packets of others that the link carries as well.
    pub(super) traffic: Option<TrafficText>,
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficText {
    /// Layer-2 bits per second; of `on-off` while it is on.
    pub(super) rate: Bandwidth,
    /// For how long.
    pub(super) r#for: Time,
    /// How packets are spread over time: evenly when absent.
    pub(super) pattern: Option<PatternText>,
    /// How long `on-off` sends on average before it pauses.
    pub(super) on: Option<Time>,
    /// How long `on-off` pauses on average.
    pub(super) off: Option<Time>,
    /// How long a packet is, in bytes of layer 2: 1000b when absent.
    pub(super) size: Option<Size>,
    /// What kind of packets: IPv4 when absent.
    pub(super) family: Option<Family>,
}

/// How packets of cross traffic are spread over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PatternText {
    /// All gaps are the same.
    Constant,
    /// Gaps are exponentially distributed.
    Poisson,
    /// It sends evenly for a while, and pauses for a while, both exponentially distributed.
    OnOff,
}
