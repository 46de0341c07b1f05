//! The syntax of cross traffic on the command line, and of the packets' size in the file.

use std::str::FromStr;

use document::{Time, from_text, number_and_unit};
use model::Bandwidth;
use model::topology::{Family, Pattern, Traffic};

/// Parses cross traffic: `rate=10mbit for=10s pattern=poisson size=1000b family=ipv6`, in any order.
pub fn cross_traffic(text: &str) -> Result<Traffic, String> {
    let time = |value: &str| value.parse::<Time>().map(|time| time.0);
    let (mut rate, mut duration, mut on, mut off) = (None, None, None, None);
    let (mut pattern, mut size, mut family) = ("constant", Traffic::SIZE, Family::Ipv4);
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
    Ok(Traffic { rate, duration, pattern, size, family })
}

fn family(text: &str) -> Result<Family, String> {
    match text {
        "ipv4" => Ok(Family::Ipv4),
        "ipv6" => Ok(Family::Ipv6),
        _ => Err(format!("`{text}` is not an address family: use ipv4 or ipv6")),
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn traffic_is_read_from_settings_in_any_order() {
        let read = cross_traffic;
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
