//! Files that accompany the topology file: schedules of link properties, and delay distributions.

use std::fmt;
use std::time::Duration;

use document::Time;
use model::Bandwidth;
use model::topology::Share;

use super::units::Percent;

/// Link properties from a point in time on; absent ones keep their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Start time.
    pub at: Duration,
    /// Packet delay.
    pub delay: Option<Duration>,
    /// Fraction of packets lost.
    pub loss: Option<Share>,
    /// Layer-2 bits per second; may be zero.
    pub rate: Option<u64>,
}

/// Link properties over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// In order of time; each includes all properties set by earlier ones.
    pub moments: Vec<Moment>,
    /// Period after which it repeats; if absent, the last moment holds forever.
    pub period: Option<Duration>,
}

/// An error in a file with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, counted from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for BadLine {}

/// Lines of a file with their numbers, without comments and blank lines.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let meant = |line: &&str| !line.is_empty() && !line.starts_with('#');
    (1..).zip(text.lines().map(str::trim)).filter(move |(_, line)| meant(line))
}

/// Quantity of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Time,
    Delay,
    Loss,
    Rate,
}

const KEYS: [(&str, Key); 4] =
    [("time", Key::Time), ("delay", Key::Delay), ("loss", Key::Loss), ("rate", Key::Rate)];

/// A column, with the default unit of its values.
struct Column<'t> {
    key: Key,
    unit: &'t str,
}

/// Shortest time between changes: shorter intervals than those between packets would only keep the
/// emulator busy.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl Course {
    /// Parses CSV: a header that names columns, `time (s),delay (ms),loss (%),rate (mbit)`, then a
    /// line for each moment. An empty cell keeps the previous value. A last line with only a time
    /// sets the period.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let mut lines = lines(text);
        let help = "begin with a line such as `time (s),delay (ms),loss (%),rate (mbit)`";
        let bad = |line, message: String| BadLine { line, message };
        let Some((number, header)) = lines.next() else {
            return Err(bad(1, format!("the file is empty: {help}")));
        };
        let columns = columns(header).map_err(|message| bad(number, message))?;
        let mut course = Self { moments: Vec::new(), period: None };
        let mut end = number;
        for (number, line) in lines {
            if course.period.is_some() {
                let message = "the line before it has a time alone, which is the end".into();
                return Err(bad(end, message));
            }
            end = number;
            course.add(&columns, line).map_err(|message| bad(number, message))?;
        }
        if course.moments.is_empty() {
            return Err(bad(end, "no line with values behind the header".into()));
        }
        Ok(course)
    }

    fn add(&mut self, columns: &[Column<'_>], line: &str) -> Result<(), String> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() > columns.len() {
            return Err(format!("{} values for {} columns", cells.len(), columns.len()));
        }
        let before = self.moments.last().copied();
        let mut now = before.unwrap_or_default();
        let (mut at, mut says) = (None, false);
        for (column, cell) in columns.iter().zip(&cells).filter(|(_, cell)| !cell.is_empty()) {
            says |= column.key != Key::Time;
            match column.key {
                Key::Time => at = Some(value::<Time>(cell, column.unit, "s")?.0),
                Key::Delay => now.delay = Some(value::<Time>(cell, column.unit, "ms")?.0),
                Key::Loss => now.loss = Some(value::<Percent>(cell, column.unit, "%")?.0),
                Key::Rate => now.rate = Some(rate(cell, column.unit)?),
            }
        }
        let at = at.ok_or("it has no time")?;
        if let Some(before) = before.filter(|before| before.at >= at) {
            return Err(match before.at == at {
                true => format!("{at:?} is the time of the line before it"),
                false => format!("{at:?} is earlier than the line before it, {:?}", before.at),
            });
        }
        if let Some(before) = before.filter(|before| at - before.at < MIN_INTERVAL) {
            let step = at - before.at;
            return Err(format!(
                "{at:?} is {step:?} after the line before it: a link changes once a millisecond at most"
            ));
        }
        if says {
            self.moments.push(Moment { at, ..now });
        } else if before.is_none() {
            return Err("it has a time alone, and nothing is before it".into());
        } else {
            self.period = Some(at);
        }
        Ok(())
    }
}

fn columns(header: &str) -> Result<Vec<Column<'_>>, String> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for cell in header.split(',').map(str::trim) {
        let (name, unit) = match cell.split_once('(') {
            Some((name, unit)) => (name.trim(), unit.trim_end_matches(')').trim()),
            None => (cell, ""),
        };
        let known = KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((name, key)) = known else {
            return Err(format!("`{name}` is not a column: there are time, delay, loss and rate"));
        };
        if columns.iter().any(|column| column.key == *key) {
            return Err(format!("there are two columns `{name}`"));
        }
        columns.push(Column { key: *key, unit });
    }
    let has_time = columns.iter().any(|column| column.key == Key::Time);
    match has_time && columns.len() > 1 {
        true => Ok(columns),
        false => Err("it needs a column `time`, and one of delay, loss and rate".into()),
    }
}

/// Parses a value with its own unit or the column's.
fn value<T: std::str::FromStr<Err = String>>(
    cell: &str,
    unit: &str,
    such: &str,
) -> Result<T, String> {
    with_unit(cell, unit, such)?.parse()
}

fn with_unit(cell: &str, unit: &str, such: &str) -> Result<String, String> {
    if cell.starts_with('-') {
        return Err(format!("`{cell}` is negative"));
    }
    let has_own = cell.ends_with(|last: char| !last.is_ascii_digit() && last != '.');
    match (has_own, unit) {
        (true, _) => Ok(cell.to_owned()),
        (false, "") => Err(format!(
            "`{cell}` has no unit: write {cell}{such}, or the unit in the header, such as ({such})"
        )),
        (false, unit) => Ok(format!("{cell}{unit}")),
    }
}

/// A rate in bits per second, which may be 0.
fn rate(cell: &str, unit: &str) -> Result<u64, String> {
    let text = with_unit(cell, unit, "mbit")?;
    if cell.parse::<f64>().is_ok_and(|number| number == 0.0) {
        return Ok(0);
    }
    text.parse::<Bandwidth>().map(Bandwidth::bps).map_err(|error| error.to_string())
}

/// Parses a file of measured delays, one per line with a unit, in any order. Returns the quantiles
/// of their distribution in ascending order.
pub fn samples(text: &str) -> Result<Vec<Duration>, BadLine> {
    let mut samples = Vec::new();
    for (line, cell) in lines(text) {
        let sample = value::<Time>(cell, "", "ms").map_err(|message| BadLine { line, message })?;
        samples.push(sample.0);
    }
    if samples.is_empty() {
        let message = "the file is empty: write a delay a line, such as 1.5ms".into();
        return Err(BadLine { line: 1, message });
    }
    samples.sort_unstable();
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_trace_lists_changes_and_its_period() {
        let text = "# of a train\ntime (s), delay (ms), rate (mbit), loss\n0, 20, 10,\n\n1.5,,0,1%\n2,40ms\n3\n";
        let course = Course::parse(text).unwrap();
        let (delay, rate) = (Some(ms(20)), Some(10_000_000));
        let loss = Share::from_percent(1.0);
        assert_eq!(
            course.moments,
            [
                Moment { at: ms(0), delay, loss: None, rate },
                Moment { at: ms(1500), delay, loss, rate: Some(0) },
                Moment { at: ms(2000), delay: Some(ms(40)), loss, rate: Some(0) },
            ]
        );
        assert_eq!(course.period, Some(ms(3000)));
        assert_eq!(Course::parse("time,delay\n1s,2ms").unwrap().period, None);
    }

    #[test]
    fn bad_courses_say_where_and_why() {
        for (text, line, words) in [
            ("", 1, "the file is empty: begin with"),
            ("# nothing\n\n", 1, "the file is empty"),
            ("time,delay\n", 1, "no line with values"),
            ("delay,loss\n1ms,1%", 1, "needs a column `time`"),
            ("time\n1s", 1, "needs a column `time`, and one of"),
            ("time,color\n1s,2", 1, "`color` is not a column"),
            ("time,delay,delay\n", 1, "two columns `delay`"),
            ("time,delay\n1s,2ms\n0.5s,2ms", 3, "500ms is earlier than the line before it, 1s"),
            ("time,delay\n1s,2ms\n1s,3ms", 3, "is the time of the line before"),
            ("time,delay\n1,2ms", 2, "`1` has no unit: write 1s"),
            ("time (s),delay\n1,2", 2, "or the unit in the header, such as (ms)"),
            ("time (s),delay (parsecs)\n1,2", 2, "not a duration"),
            ("time (s),delay (ms)\n1,-2", 2, "`-2` is negative"),
            ("time (s),loss (%)\n1,101", 2, "not a percentage"),
            ("time (s),rate (mbit)\n1,9x9", 2, "not a unit of bandwidth"),
            ("time (s),delay (ms)\n1,2,3", 2, "3 values for 2 columns"),
            ("time (s),delay (ms)\n,2", 2, "it has no time"),
            ("time (s),delay (ms)\n5", 2, "nothing is before it"),
            ("time (s),delay (ms)\n0,1\n5\n6,2", 3, "a time alone, which is the end"),
            ("time (s),delay (ms)\n4,1\n3", 3, "earlier"),
            ("time (ms),loss (%)\n0,1\n1,2\n1.9,3", 4, "1.9ms is 900µs after the line before"),
            ("time (us),loss (%)\n0,1\n999", 3, "once a millisecond at most"),
        ] {
            let bad = Course::parse(text).unwrap_err();
            assert!(bad.line == line && bad.message.contains(words), "{text:?}: {bad}");
        }
    }

    #[test]
    fn samples_are_in_order_afterwards() {
        assert_eq!(samples("3ms\n# x\n1ms\n2ms\n"), Ok(vec![ms(1), ms(2), ms(3)]));
        for (text, line, words) in [
            ("\n", 1, "the file is empty"),
            ("1ms\n2", 2, "has no unit"),
            ("1ms\n-2ms", 2, "negative"),
            ("1ms\n\nx", 3, "not a duration"),
        ] {
            let bad = samples(text).unwrap_err();
            assert!(bad.line == line && bad.message.contains(words), "{text:?}: {bad}");
        }
    }
}
