//! Cross traffic: additional packets on a link besides those of the lab.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::units::{Time, number_and_unit};
use super::values::quantity::{Family, TestDuration, duration_text};
use crate::Bandwidth;
use crate::document::from_text;

fn family(text: &str) -> Result<Family, String> {
    match text {
        "ipv4" => Ok(Family::Ipv4),
        "ipv6" => Ok(Family::Ipv6),
        _ => Err(format!("`{text}` is not an address family: use ipv4 or ipv6")),
    }
}

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
        #[schemars(with = "TestDuration")]
        on: Duration,
        /// Mean duration of off periods.
        #[serde(serialize_with = "duration_text")]
        #[schemars(with = "TestDuration")]
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
    #[schemars(with = "TestDuration")]
    pub duration: Duration,
    /// Distribution of packets over time.
    pub pattern: Pattern,
    /// Packet size in layer-2 bytes.
    pub size: u32,
    /// Address family of the packets.
    pub family: Family,
}

/// Maximum number of packets per second, to limit the load on one thread.
const MOST_PACKETS: u64 = 1_000_000;

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
        if self.rate.bps() == 0 || self.rate.bps() / bits > MOST_PACKETS {
            let message = format!("{} in packets of {} bytes", self.rate, self.size);
            let help = format!("write 1bit to {}mbit", bits * MOST_PACKETS / 1_000_000);
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

/// Parses `rate=10mbit for=10s pattern=poisson size=1000b family=ipv6`, in any order.
impl FromStr for Traffic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |value: &str| value.parse::<Time>().map(|time| time.0);
        let (mut rate, mut duration, mut on, mut off) = (None, None, None, None);
        let (mut pattern, mut size, mut family) = ("constant", Self::SIZE, Family::Ipv4);
        for setting in text.split_whitespace() {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("`{setting}`: write KEY=VALUE, such as rate=10mbit"))?;
            match key {
                "rate" => rate = Some(value.parse::<Bandwidth>().map_err(|e| e.to_string())?),
                "for" => duration = Some(time(value)?),
                "on" => on = Some(time(value)?),
                "off" => off = Some(time(value)?),
                "pattern" => pattern = value,
                "size" => size = value.parse::<Size>()?.0,
                "family" => family = self::family(value)?,
                _ => {
                    let known = "rate, for, pattern, on, off, size and family";
                    return Err(format!("cross traffic has no `{key}`: there are {known}"));
                }
            }
        }
        let pattern = match (pattern, on, off) {
            ("on-off", Some(on), Some(off)) => Pattern::OnOff { on, off },
            ("on-off", ..) => return Err("on-off needs on= and off=, such as on=100ms".into()),
            (_, Some(_), _) | (_, _, Some(_)) => {
                return Err("on= and off= go with pattern=on-off".into());
            }
            ("constant", ..) => Pattern::Constant,
            ("poisson", ..) => Pattern::Poisson,
            (other, ..) => {
                return Err(format!("`{other}` is not a pattern: use constant, poisson or on-off"));
            }
        };
        let rate = rate.ok_or("say how much, such as rate=10mbit")?;
        let duration = duration.ok_or("say for how long, such as for=10s")?;
        Ok(Self { rate, duration, pattern, size, family })
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, duration, pattern, size, family } = self;
        write!(f, "{rate} {pattern} for {duration:?}, {} packets of {size} bytes", name(*family))
    }
}

/// Size of a packet in bytes, with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) u32);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a size: write one such as 1000b or 1.4kb");
        let (number, unit) = number_and_unit(text).ok_or_else(bad)?;
        let factor = match unit {
            "b" => 1.0,
            "kb" => 1024.0,
            "" => return Err(format!("`{text}` has no unit: write {text}b (bytes)")),
            _ => return Err(bad()),
        };
        let size = number * factor;
        (1.0..=65_535.0).contains(&size).then_some(Self(size as u32)).ok_or_else(bad)
    }
}
from_text!(Size, "a size such as 1000b", r"^[0-9]+(\.[0-9]+)? *(b|kb)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_from_settings_in_any_order() {
        let read = |text: &str| text.parse::<Traffic>();
        let (rate, duration) = (Bandwidth::from_mbps(10), Duration::from_secs(10));
        let plain = Traffic {
            rate,
            duration,
            pattern: Pattern::Constant,
            size: 1000,
            family: Family::Ipv4,
        };
        assert_eq!(read("for=10s rate=10mbit"), Ok(plain));
        let (on, off) = (Duration::from_millis(100), Duration::from_secs(1));
        let pattern = Pattern::OnOff { on, off };
        let other = Traffic { pattern, size: 1400, family: Family::Ipv6, ..plain };
        let text = "rate=10mbit for=10s pattern=on-off on=100ms off=1s size=1400b family=ipv6";
        assert_eq!(read(text), Ok(other));
        for (bad, words) in [
            ("rate=10mbit", "say for how long"),
            ("for=1s", "say how much"),
            ("rate=10mbit for=1s on=1s", "go with pattern=on-off"),
            ("rate=10mbit for=1s pattern=on-off", "needs on= and off="),
            ("rate=10mbit for=1s pattern=bursts", "not a pattern"),
            ("rate=10mbit for=1s size=9", "has no unit"),
            ("rate=10mbit for=1s color=red", "there are rate, for"),
            ("10mbit", "write KEY=VALUE"),
        ] {
            let said = read(bad).unwrap_err();
            assert!(said.contains(words), "{bad}: {said}");
        }
    }
}
