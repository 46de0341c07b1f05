//! Scalar values with units: numbers and durations.

use std::str::FromStr;
use std::time::Duration;

/// Splits a text such as `12.5mbit` into (12.5, "mbit").
pub fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    Some((text[..split].parse().ok()?, text[split..].trim()))
}

/// A duration with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

const TIME_UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a duration: write one such as 10ms, 1s or 2m");
        let (number, unit) = number_and_unit(text).ok_or_else(bad)?;
        if unit.is_empty() {
            return Err(format!("`{text}` has no unit: write {text}ms, {text}s or {text}m"));
        }
        let (_, factor) = TIME_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let nanoseconds = (number * factor).round();
        // About a hundred years, so that sums of times cannot overflow.
        if nanoseconds > 3.2e18 {
            return Err(bad());
        }
        Ok(Self(Duration::from_nanos(nanoseconds as u64)))
    }
}
crate::from_text!(Time, "a duration such as 10ms or 2m", r"^[0-9]+(\.[0-9]+)? *(ns|us|ms|s|m|h)$");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let time = |text: &str| text.parse::<Time>().map(|time| time.0);
        assert_eq!(time("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(time("10ns"), Ok(Duration::from_nanos(10)));
        assert!(time("10").unwrap_err().contains("write 10ms, 10s or 10m"));
        for bad in ["ms", "10 parsecs", "-1s", "1e9s", "9999999999999999h", ""] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
