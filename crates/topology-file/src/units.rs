//! Values with units in the file: percentages, jitters, queues, ranges.

use std::fmt;
use std::str::FromStr;

use document::{Time, from_text, number_and_unit};
use model::Bandwidth;
use model::topology::{Discipline, Jitter, Queue, Range, Shape, Share};

/// A percentage.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Percent(pub(crate) Share);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match number_and_unit(text) {
            Some((number, "%")) => Share::from_percent(number),
            Some((_, "")) => return Err(format!("`{text}` has no unit: write {text}%")),
            _ => None,
        };
        let bad = || format!("`{text}` is not a percentage: write one from 0% to 100%");
        share.map(Self).ok_or_else(bad)
    }
}
from_text!(Percent, "a percentage such as 0.1%", r"^[0-9]+(\.[0-9]+)? *%$");

/// Delay variation: a duration and the shape of its distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JitterText(pub(crate) Jitter);

impl FromStr for JitterText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (time, shape) = text.split_once(' ').unwrap_or((text, "normal"));
        let spread = time.parse::<Time>()?.0;
        let shape = match shape.trim() {
            "normal" => Shape::Normal,
            "pareto" => Shape::Pareto,
            "uniform" => Shape::Uniform,
            other => {
                return Err(format!(
                    "`{other}` is not a distribution: use normal, pareto or uniform"
                ));
            }
        };
        Ok(Self(Jitter { spread, shape }))
    }
}
from_text!(
    JitterText,
    "a jitter such as `2ms normal`",
    r"^[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)( +(normal|pareto|uniform))?$"
);

/// A queue in the file: its limit and discipline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueueText {
    pub(crate) limit: Queue,
    pub(crate) discipline: Discipline,
    pub(crate) ecn: bool,
}

impl FromStr for QueueText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is not a queue: write one such as 250p (packets) or 64kb (bytes)");
        let (limit, discipline) = text.split_once(' ').unwrap_or((text, "drop-tail"));
        let (number, unit) = number_and_unit(limit).ok_or_else(bad)?;
        // kb and mb are powers of two, as in tc.
        let factor = match unit {
            "p" if number.fract() == 0.0 => 1.0,
            "b" => 1.0,
            "kb" => 1024.0,
            "mb" => 1024.0 * 1024.0,
            "" => return Err(format!("`{text}` has no unit: write {text}p (packets) or {text}kb")),
            _ => return Err(bad()),
        };
        let size = number * factor;
        // At most 1 GiB, so that products cannot overflow.
        if !(1.0..=1_073_741_824.0).contains(&size) {
            return Err(bad());
        }
        let size = size as u32;
        let limit = if unit == "p" { Queue::Packets(size) } else { Queue::Bytes(size) };
        let (discipline, ecn) = match discipline.trim().rsplit_once(' ') {
            Some((discipline, "ecn")) => (discipline.trim(), true),
            _ => (discipline.trim(), false),
        };
        let discipline = match discipline {
            "drop-tail" | "ecn" if ecn || discipline == "ecn" => {
                return Err("`ecn` needs something that marks: write red, codel or pie".into());
            }
            "drop-tail" => Discipline::DropTail,
            "codel" => Discipline::Codel,
            "red" => Discipline::Red,
            "pie" => Discipline::Pie,
            other => {
                let known = "use drop-tail, codel, red or pie";
                return Err(format!("`{other}` is not a queue discipline: {known}"));
            }
        };
        Ok(Self { limit, discipline, ecn })
    }
}
from_text!(
    QueueText,
    "a queue such as 250p, 64kb or `250p codel ecn`",
    r"^[0-9]+(\.[0-9]+)?(p|b|kb|mb)( +(drop-tail|(codel|red|pie)( +ecn)?))?$"
);

fn range<T: FromStr + PartialOrd>(text: &str, example: &str) -> Result<Range<T>, String>
where
    T::Err: fmt::Display,
{
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is not a range: write one such as {example}"))?;
    let from = from.trim().parse::<T>().map_err(|error| error.to_string())?;
    let to = to.trim().parse::<T>().map_err(|error| error.to_string())?;
    if from > to {
        return Err(format!("the range `{text}` is empty: write the smaller value first"));
    }
    Ok(Range { from, to })
}

/// A range of durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeRange(pub(crate) Range<Time>);

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        range(text, "40ms..48ms").map(Self)
    }
}
from_text!(
    TimeRange,
    "a range of durations such as 40ms..48ms",
    r"^[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)\.\.[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)$"
);

/// A range of percentages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PercentRange(pub(crate) Range<Percent>);

impl FromStr for PercentRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        range(text, "0%..5%").map(Self)
    }
}
from_text!(
    PercentRange,
    "a range of percentages such as 0%..5%",
    r"^[0-9]+(\.[0-9]+)? *%\.\.[0-9]+(\.[0-9]+)? *%$"
);

/// A range of bandwidths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BandwidthRange(pub(crate) Range<Bandwidth>);

impl FromStr for BandwidthRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        range(text, "90mbit..100mbit").map(Self)
    }
}
from_text!(
    BandwidthRange,
    "a range of bandwidths such as 90mbit..100mbit",
    r"^[0-9]+(\.[0-9]+)?([kmgt]?bit)\.\.[0-9]+(\.[0-9]+)?([kmgt]?bit)$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_packets_or_bytes() {
        let queue = |text: &str| text.parse::<QueueText>().unwrap();
        assert_eq!(
            queue("250p"),
            QueueText { limit: Queue::Packets(250), discipline: Discipline::DropTail, ecn: false }
        );
        assert_eq!(queue("64kb").limit, Queue::Bytes(65536));
        assert_eq!(queue("250p codel").discipline, Discipline::Codel);
        let marks = queue("250p  red  ecn");
        assert!(marks.ecn && marks.discipline == Discipline::Red && !queue("250p red").ecn);
        for bad in [
            "250",
            "1.5p",
            "0p",
            "9999mb",
            "250p magic",
            "250p ecn",
            "250p drop-tail ecn",
            "250p red red",
            "p",
        ] {
            assert!(bad.parse::<QueueText>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_and_percentages() {
        assert!("40ms..48ms".parse::<TimeRange>().is_ok());
        assert!("48ms..40ms".parse::<TimeRange>().unwrap_err().contains("smaller value first"));
        assert!("90mbit".parse::<BandwidthRange>().unwrap_err().contains("not a range"));
        assert!("0.1%".parse::<Percent>().is_ok());
        assert!("1".parse::<Percent>().is_err() && "101%".parse::<Percent>().is_err());
        assert!(
            "2ms pareto".parse::<JitterText>().is_ok() && "2ms odd".parse::<JitterText>().is_err()
        );
    }
}
