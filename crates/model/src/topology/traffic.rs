//! Cross traffic: additional packets on a link besides those of the lab.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity::{DurationText, Family, duration_text};
use crate::Bandwidth;

/// Name in files.
fn name(family: Family) -> &'static str {
    if family.is_ipv6() { "ipv6" } else { "ipv4" }
}

/// Size in bytes of the smallest packet: Ethernet, IP and UDP headers, and a sequence number.
fn least(family: Family) -> u32 {
    wire::ETHERNET as u32 + if family.is_ipv6() { 40 } else { 20 } + 8 + 8
}

/// Distribution of packets over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Constant gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
    /// Alternating periods with constant gaps and without packets, both of exponentially
    /// distributed duration.
    OnOff {
        /// Mean duration of on periods.
        #[serde(serialize_with = "duration_text")]
        #[schemars(with = "DurationText")]
        on: Duration,
        /// Mean duration of off periods.
        #[serde(serialize_with = "duration_text")]
        #[schemars(with = "DurationText")]
        off: Duration,
    },
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::OnOff { on, off } => write!(f, "on-off {on:?}/{off:?}"),
        }
    }
}

/// Cross traffic on one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Traffic {
    /// Rate in layer-2 bits per second; for [`Pattern::OnOff`] the rate during on periods.
    pub rate: Bandwidth,
    /// Duration.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub duration: Duration,
    /// Distribution of packets over time.
    pub pattern: Pattern,
    /// Packet size in layer-2 bytes.
    pub size: u32,
    /// Address family of the packets.
    pub family: Family,
}

/// Maximum number of packets per second, to limit the load on one thread.
const MAX_PACKETS: u64 = 1_000_000;

impl Traffic {
    /// Default packet size in layer-2 bytes.
    pub const SIZE: u32 = 1000;

    /// Validates the traffic for a device with this MTU. Returns the invalid key, a message and a
    /// fix.
    pub fn fault(&self, mtu: u16) -> Option<(&'static str, String, String)> {
        let (least, most) = (least(self.family), u32::from(mtu) + wire::ETHERNET as u32);
        if !(least..=most).contains(&self.size) {
            let message = format!("no {} packet here has {} bytes", name(self.family), self.size);
            return Some(("size", message, format!("write a size from {least}b to {most}b")));
        }
        let bits = u64::from(self.size) * 8;
        if self.rate.bps() == 0 || self.rate.bps() / bits > MAX_PACKETS {
            let message = format!("{} in packets of {} bytes", self.rate, self.size);
            let help = format!("write 1bit to {}mbit", bits * MAX_PACKETS / 1_000_000);
            return Some(("rate", format!("cross traffic cannot have {message}"), help));
        }
        if self.duration.is_zero() {
            let message = "cross traffic needs time".to_owned();
            return Some(("for", message, "write a duration such as 10s".into()));
        }
        let Pattern::OnOff { on, off } = self.pattern else { return None };
        if on.is_zero() || off.is_zero() {
            let key = if on.is_zero() { "on" } else { "off" };
            let message = format!("`{key}` is zero");
            return Some((key, message, "write a duration such as 100ms".into()));
        }
        // Each on period is drawn at random: avoid millions of draws between two packets.
        let packet = Duration::from_nanos(bits * 1_000_000_000 / self.rate.bps());
        if on < packet {
            let message = format!("`on` is {on:?}, and a packet takes {packet:?}");
            return Some(("on", message, "write a longer time, or a higher rate".into()));
        }
        None
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, duration, pattern, size, family } = self;
        write!(f, "{rate} {pattern} for {duration:?}, {} packets of {size} bytes", name(*family))
    }
}
