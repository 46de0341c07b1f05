//! `kaido lab top`: measured behavior of links next to their settings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// A direction of a link, measured for an interval. A null value is not known, or does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredDirection {
    /// Link name.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Receiving node; empty for a LAN.
    pub to: String,
    /// True if the emulator carries the packets.
    pub emulated: bool,
    /// True if the link is down.
    pub down: bool,
    /// Delay of the settings, without jitter, in nanoseconds.
    pub delay_ns: Option<u64>,
    /// Mean time that packets spent on the link, in nanoseconds.
    pub delay_measured_ns: Option<f64>,
    /// Mean delay of packets beyond the time that the link specifies, in nanoseconds.
    pub late_mean_ns: Option<f64>,
    /// Upper bound of the largest such delay, in nanoseconds.
    pub late_max_ns: Option<u64>,
    /// Loss of the settings, as a fraction from 0 to 1.
    pub loss: Option<f64>,
    /// Fraction of packets lost, from 0 to 1.
    pub loss_measured: Option<f64>,
    /// Rate of the settings, in layer-2 bits per second.
    pub rate_bps: Option<u64>,
    /// Throughput, in layer-2 bits per second.
    pub rate_measured_bps: Option<f64>,
    /// Packets per second that have arrived.
    pub packets_per_s: Option<f64>,
    /// Packets in the queue.
    pub queue_packets: Option<u64>,
    /// Bytes in the queue.
    pub queue_bytes: Option<u64>,
    /// Packets dropped in the interval, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// The reason if nothing is known about the direction.
    pub unknown: Option<&'static str>,
}
