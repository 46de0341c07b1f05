//! Durations, ranges, queue limits and address families.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bandwidth;

/// Units of durations, in nanoseconds.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A duration, serialized as text with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct DurationText(
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "String")]
    pub Duration,
);

/// Serializes a duration as in the file: `4s`, `20ms`.
pub(crate) fn duration_text<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&DurationText(*duration))
}

/// Deserializes a duration that [`duration_text`] has serialized.
pub(crate) fn parse_duration<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = UNITS.iter().find_map(|(unit, nanoseconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*nanoseconds).map(Duration::from_nanos)
    });
    parsed.ok_or_else(|| serde::de::Error::custom("a duration such as 20ms is expected"))
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.as_nanos();
        let (unit, factor) = UNITS
            .into_iter()
            .find(|(_, factor)| nanoseconds.is_multiple_of(u128::from(*factor)))
            .unwrap_or(("ns", 1));
        write!(f, "{}{unit}", nanoseconds / u128::from(factor))
    }
}

/// An inclusive range of values: `40ms..48ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RangeOf{T}")]
pub struct Range<T> {
    /// Minimum.
    pub from: T,
    /// Maximum.
    pub to: T,
}

impl<T: PartialOrd> Range<T> {
    /// True if a value is in the range.
    pub fn contains(&self, value: &T) -> bool {
        (&self.from..=&self.to).contains(&value)
    }
}

impl<T: fmt::Display> fmt::Display for Range<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

/// Queue limit at a link's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Queue {
    /// The amount that is sent at the rate in 25 ms, but at least 64 KiB.
    #[default]
    Auto,
    /// Limit in packets of the device's MTU.
    Packets(u32),
    /// Limit in bytes.
    Bytes(u32),
}

impl Queue {
    /// Size of [`Queue::Auto`] in bytes, for a rate in bits per second.
    pub fn auto_bytes(bps: u64) -> u64 {
        (bps / 8 / 40).max(64 * 1024)
    }

    /// Limit in bytes, for `rate` on a device with `device_mtu`.
    pub fn limit_bytes(self, rate: Bandwidth, device_mtu: u16) -> u64 {
        match self {
            Self::Auto => Self::auto_bytes(rate.bps()),
            Self::Packets(packets) => {
                u64::from(packets) * (u64::from(device_mtu) + wire::ETHERNET as u64)
            }
            Self::Bytes(bytes) => u64::from(bytes),
        }
    }
}

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// True for IPv6.
    pub fn is_ipv6(self) -> bool {
        self == Self::Ipv6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_it_was_written() {
        for nanoseconds in [0, 1, 20_000_000, 1_500, 7_000_000_000, u64::MAX] {
            let duration = Duration::from_nanos(nanoseconds);
            let json = serde_json::to_value(DurationText(duration)).unwrap();
            assert_eq!(parse_duration(json).unwrap(), duration);
        }
        for text in ["", "20", "ms", "-1s", "20m", "18446744073709551616ns", "99999999999s"] {
            assert!(parse_duration(serde_json::Value::from(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn a_queue_without_a_limit_follows_the_rate() {
        // 25 ms at 100 Mbit/s are 312,500 bytes; at 1 Mbit/s less than one GSO packet.
        assert_eq!(Queue::Auto.limit_bytes(Bandwidth::from_mbps(100), 1740), 312_500);
        assert_eq!(Queue::Auto.limit_bytes(Bandwidth::from_mbps(1), 1740), 65_536);
        assert_eq!(Queue::Packets(10).limit_bytes(Bandwidth::from_mbps(1), 1500), 15_140);
    }
}
