//! The log of a daemon, whose rate is limited: it may be a file in memory, and others cause its lines.

use std::io::{self, Stderr, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Number of bytes after a quiet time.
const BURST: f64 = 1_048_576.0;
/// Number of further bytes in a second: some 20 MB a day for each budget.
const RATE: f64 = 256.0;

/// Starts the log on standard error. `KAIDO_LOG` sets its level, and removes the limit of its rate.
pub(crate) fn start() {
    let requested = EnvFilter::try_from_env("KAIDO_LOG").ok();
    let budget = || requested.is_none().then(|| Budget::new(Instant::now()));
    let log = Log { notes: Mutex::new(budget()), warnings: Mutex::new(budget()) };
    let filter = requested.unwrap_or_else(|| EnvFilter::new("info"));
    // No colors: the log is more often a file than a terminal.
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(log).init();
}

/// Budgets of notes, and of warnings and errors, which notes do not use up.
struct Log {
    notes: Mutex<Option<Budget>>,
    warnings: Mutex<Option<Budget>>,
}

impl<'l> MakeWriter<'l> for Log {
    type Writer = Line<'l, Stderr>;

    fn make_writer(&'l self) -> Self::Writer {
        Line { budget: &self.notes, to: io::stderr() }
    }

    fn make_writer_for(&'l self, of: &Metadata<'_>) -> Self::Writer {
        let is_urgent = *of.level() <= Level::WARN;
        Line { budget: if is_urgent { &self.warnings } else { &self.notes }, to: io::stderr() }
    }
}

/// Writes a line, if the budget permits it.
struct Line<'l, W> {
    budget: &'l Mutex<Option<Budget>>,
    to: W,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let suppressed = match &mut *budget {
            Some(budget) => match budget.take(line.len(), Instant::now()) {
                Some(suppressed) => suppressed,
                None => return Ok(line.len()),
            },
            None => 0,
        };
        if suppressed > 0 {
            writeln!(self.to, "{suppressed} lines suppressed")?;
        }
        self.to.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A token bucket of bytes.
struct Budget {
    left: f64,
    at: Instant,
    suppressed: u64,
}

impl Budget {
    fn new(at: Instant) -> Self {
        Self { left: BURST, at, suppressed: 0 }
    }

    /// Takes a line from the budget. Returns the number of lines that have been suppressed before it;
    /// `None` if the budget is used up.
    fn take(&mut self, bytes: usize, now: Instant) -> Option<u64> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + passed * RATE).min(BURST), now);
        // A long line is not suppressed by short ones.
        if self.left <= 0.0 {
            self.suppressed += 1;
            return None;
        }
        self.left -= bytes as f64;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_without_end_are_limited() {
        let begin = Instant::now();
        let mut budget = Budget::new(begin);
        let printed = (0..100_000).filter_map(|_| budget.take(128, begin)).count();
        assert_eq!((printed as f64 * 128.0, budget.suppressed), (BURST, 91_808));
        assert_eq!(budget.take(1 << 12, begin + Duration::from_millis(600)), Some(91_808));
        assert_eq!(budget.take(1, begin + Duration::from_millis(600)), None);
        let later = begin + Duration::from_secs(100);
        assert_eq!((0..100).filter_map(|_| budget.take(128, later)).sum::<u64>(), 1);
    }

    #[test]
    fn lines_before_a_line_are_counted() {
        let mut budget = Budget::new(Instant::now());
        (budget.left, budget.suppressed) = (1.0, 3);
        let budget = Mutex::new(Some(budget));
        let mut line = Line { budget: &budget, to: Vec::new() };
        line.write_all(b"one\n").unwrap();
        line.write_all(b"two\n").unwrap();
        assert_eq!(line.to, b"3 lines suppressed\none\n");
    }
}
