//! Files beside the topology file: what a link does over time, and how its delays are spread.

use std::fmt;
use std::time::Duration;

use super::impairments::Share;
use super::units::{Percent, Time};
use crate::Bandwidth;

/// What a link does from a moment on; what is not given stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// From when on.
    pub at: Duration,
    /// How long packets are on their way.
    pub delay: Option<Duration>,
    /// How many packets are lost.
    pub loss: Option<Share>,
    /// Bits of layer 2 per second; none at all is possible.
    pub rate: Option<u64>,
}

/// What a link does over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// In the order of time, and each with all that was said before.
    pub moments: Vec<Moment>,
    /// When it begins again; without, the last moment is for ever.
    pub period: Option<Duration>,
}

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for BadLine {}

/// A line of a file without what is only for people, with its number.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let meant = |line: &&str| !line.is_empty() && !line.starts_with('#');
    (1..).zip(text.lines().map(str::trim)).filter(move |(_, line)| meant(line))
}

/// What a column is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Time,
    Delay,
    Loss,
    Rate,
}

const KEYS: [(&str, Key); 4] =
    [("time", Key::Time), ("delay", Key::Delay), ("loss", Key::Loss), ("rate", Key::Rate)];

/// A column, and the unit of its values, if they have none of their own.
struct Column<'t> {
    key: Key,
    unit: &'t str,
}

/// What changes more often than packets come keeps the emulator busy with nothing else.
const SHORTEST: Duration = Duration::from_millis(1);

impl Course {
    /// Reads CSV: a header that names columns, `time (s),delay (ms),loss (%),rate (mbit)`, then a line
    /// for each moment. A cell that is empty leaves what was. A last line with a time alone says when
    /// it begins again.
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
            return Err(bad(end, "there is no line with values behind the header".into()));
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
        if let Some(before) = before.filter(|before| at - before.at < SHORTEST) {
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
            return Err(format!("`{name}` is no column: there are time, delay, loss and rate"));
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

/// A value with its own unit, or the column's.
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

/// In bits per second; 0 is one, too.
fn rate(cell: &str, unit: &str) -> Result<u64, String> {
    let text = with_unit(cell, unit, "mbit")?;
    if cell.parse::<f64>().is_ok_and(|number| number == 0.0) {
        return Ok(0);
    }
    text.parse::<Bandwidth>().map(Bandwidth::bps).map_err(|error| error.to_string())
}

/// Reads a file of delays that were measured, one a line with its unit, in any order: the quantiles of
/// their distribution, ascending.
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
    fn a_course_says_what_changes_and_when_it_begins_again() {
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
            ("time,colour\n1s,2", 1, "`colour` is no column"),
            ("time,delay,delay\n", 1, "two columns `delay`"),
            ("time,delay\n1s,2ms\n0.5s,2ms", 3, "500ms is earlier than the line before it, 1s"),
            ("time,delay\n1s,2ms\n1s,3ms", 3, "is the time of the line before"),
            ("time,delay\n1,2ms", 2, "`1` has no unit: write 1s"),
            ("time (s),delay\n1,2", 2, "or the unit in the header, such as (ms)"),
            ("time (s),delay (parsecs)\n1,2", 2, "no duration"),
            ("time (s),delay (ms)\n1,-2", 2, "`-2` is negative"),
            ("time (s),loss (%)\n1,101", 2, "no percentage"),
            ("time (s),rate (mbit)\n1,9x9", 2, "no unit of bandwidth"),
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
            ("1ms\n\nx", 3, "no duration"),
        ] {
            let bad = samples(text).unwrap_err();
            assert!(bad.line == line && bad.message.contains(words), "{text:?}: {bad}");
        }
    }
}
