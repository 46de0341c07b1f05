//! Bandwidth in layer-2 bits per second.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Layer-2 bits per second. They include the Ethernet header but neither preamble nor FCS, like the
/// kernel's queueing disciplines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bandwidth(u64);

/// Parsing error of a bandwidth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BandwidthError {
    /// The number has no unit.
    #[error("`{0}` has no unit: write {0}bit, {0}kbit, {0}mbit, {0}gbit or {0}tbit")]
    NoUnit(String),
    /// The unit is not a unit of bits per second.
    #[error("`{0}` is not a unit of bandwidth: use bit, kbit, mbit, gbit or tbit")]
    BadUnit(String),
    /// The number is malformed, negative or too large.
    #[error("`{0}` is not a number of bits per second")]
    BadNumber(String),
    /// The bandwidth is zero.
    #[error("a bandwidth must be more than zero")]
    Zero,
}

const UNITS: [(&str, f64); 5] =
    [("tbit", 1e12), ("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

impl Bandwidth {
    /// A bandwidth of `bits` per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// A bandwidth of `mbit` million bits per second.
    pub const fn from_mbps(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }
}

impl FromStr for Bandwidth {
    type Err = BandwidthError;

    fn from_str(text: &str) -> Result<Self, BandwidthError> {
        let text = text.trim();
        let split = text
            .find(|c: char| c.is_ascii_alphabetic() || c == '/')
            .ok_or_else(|| BandwidthError::NoUnit(text.into()))?;
        let (number, unit) = (text[..split].trim(), text[split..].to_ascii_lowercase());
        let (_, factor) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| BandwidthError::BadUnit(text[split..].into()))?;
        let value: f64 = number.parse().map_err(|_| BandwidthError::BadNumber(text.into()))?;
        let bits = value * factor;
        if !(0.0..=1e18).contains(&bits) {
            return Err(BandwidthError::BadNumber(text.into()));
        }
        match bits.round() as u64 {
            0 => Err(BandwidthError::Zero),
            bits => Ok(Self(bits)),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, factor) in UNITS {
            let scaled = self.0 as f64 / factor;
            if scaled >= 1.0 || unit == "bit" {
                let digits = if (scaled * 100.0).round() % 100.0 == 0.0 { 0 } else { 2 };
                return write!(f, "{scaled:.digits$}{unit}");
            }
        }
        unreachable!("the last unit always matches")
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Exact, so that the value survives a round trip: use the largest unit that divides it.
        let (unit, factor) = UNITS
            .iter()
            .find(|(_, factor)| self.0.is_multiple_of(*factor as u64))
            .copied()
            .unwrap_or(("bit", 1.0));
        serializer.collect_str(&format_args!("{}{unit}", self.0 / factor as u64))
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Bandwidth {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bandwidth".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "Layer-2 bits per second with a unit, such as 100mbit or 1.5gbit",
            "pattern": "^[0-9]+(\\.[0-9]+)? *([kKmMgGtT]?[bB][iI][tT])$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_survives_a_round_trip() {
        for text in ["100mbit", "1500mbit", "1bit", "999kbit", "5gbit", "2tbit"] {
            let bandwidth: Bandwidth = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&bandwidth).unwrap(), format!("\"{text}\""));
        }
        assert_eq!("1.5 gbit".parse(), Ok(Bandwidth::from_mbps(1500)));
        assert_eq!(Bandwidth::from_mbps(1500).to_string(), "1.50gbit");
    }

    #[test]
    fn an_ambiguous_bandwidth_is_refused() {
        assert_eq!("100".parse::<Bandwidth>(), Err(BandwidthError::NoUnit("100".into())));
        // Only bits are supported, so that they cannot be confused with bytes.
        assert_eq!("100MBps".parse::<Bandwidth>(), Err(BandwidthError::BadUnit("MBps".into())));
        assert_eq!("-1mbit".parse::<Bandwidth>(), Err(BandwidthError::BadNumber("-1mbit".into())));
        assert_eq!("0mbit".parse::<Bandwidth>(), Err(BandwidthError::Zero));
    }
}
