//! The log of a daemon, whose rate is limited: it may be a file in memory, and others cause its lines.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Instant;

/// Number of lines after a quiet time.
const BURST: f64 = 10_000.0;
/// Number of further lines in a second: some 20 MB a day.
const RATE: f64 = 2.0;

/// Starts the log on standard error. `KAIDO_LOG` sets its level, and removes the limit of its rate.
pub(crate) fn start() {
    let requested = tracing_subscriber::EnvFilter::try_from_env("KAIDO_LOG").ok();
    let is_limited = requested.is_none();
    let filter = requested.unwrap_or_else(|| tracing_subscriber::EnvFilter::new("info"));
    let budget = is_limited.then(|| Budget::new(Instant::now()));
    // No colors: the log is more often a file than a terminal.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Mutex::new(Log { budget, to: io::stderr() }))
        .init();
}

/// Writes lines as long as there is a budget.
struct Log<W> {
    budget: Option<Budget>,
    to: W,
}

impl<W: Write> Write for Log<W> {
    /// Each call has one line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let suppressed = match &mut self.budget {
            Some(budget) => match budget.take(Instant::now()) {
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

/// A token bucket of lines.
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
    fn take(&mut self, now: Instant) -> Option<u64> {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + passed * RATE).min(BURST), now);
        if self.left < 1.0 {
            self.suppressed += 1;
            return None;
        }
        self.left -= 1.0;
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
        let printed = (0..100_000).filter_map(|_| budget.take(begin)).count();
        assert_eq!((printed as f64, budget.suppressed), (BURST, 90_000));
        assert_eq!(budget.take(begin + Duration::from_millis(600)), Some(90_000));
        assert_eq!(budget.take(begin + Duration::from_millis(600)), None);
        let later = begin + Duration::from_secs(10);
        assert_eq!((0..100).filter_map(|_| budget.take(later)).sum::<u64>(), 1);
    }

    #[test]
    fn a_line_after_others_tells_their_number() {
        let mut budget = Budget::new(Instant::now());
        (budget.left, budget.suppressed) = (1.0, 3);
        let mut log = Log { budget: Some(budget), to: Vec::new() };
        log.write_all(b"one\n").unwrap();
        log.write_all(b"two\n").unwrap();
        assert_eq!(log.to, b"3 lines suppressed\none\n");
    }
}
