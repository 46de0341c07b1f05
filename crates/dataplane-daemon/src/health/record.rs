//! The check results of a service function, and the state derived from them.

use std::time::Instant;

use model::dataplane::Health;

/// The state of a service function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// True if the function is up and may be announced.
    pub(crate) up: bool,
    /// Time of the last change of `up`, as far as this daemon knows.
    pub(crate) since: Instant,
    /// Number of consecutive runs with the result of the last run.
    pub(crate) in_a_row: u32,
    /// Number of runs; `failures` of them failed.
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// Number of runs that could not be started. They do not say anything about the function, and
    /// are not counted in `runs`.
    pub(crate) not_started: u64,
    /// Reason of the last run's failure; `None` if the run succeeded.
    pub(crate) failure: Option<String>,
}

impl Record {
    /// Creates a record without results, with the previous state.
    pub(crate) fn new(up: bool) -> Self {
        let since = Instant::now();
        Self { up, since, in_a_row: 0, runs: 0, failures: 0, not_started: 0, failure: None }
    }

    /// Records the result of a run; `None` is success. Returns true if the function has gone up or
    /// down because of it. If the first result is a success, a function that was down is up at
    /// once.
    pub(crate) fn note(&mut self, failure: Option<String>, health: &Health, now: Instant) -> bool {
        let is_first = self.runs == 0;
        let is_same = !is_first && failure.is_some() == self.failure.is_some();
        self.in_a_row = if is_same { self.in_a_row.saturating_add(1) } else { 1 };
        self.runs += 1;
        self.failures += u64::from(failure.is_some());
        let works = failure.is_none();
        self.failure = failure;
        let needed = match works {
            true if is_first => 1,
            true => health.rise,
            false => health.fall,
        };
        if works == self.up || self.in_a_row < needed {
            return false;
        }
        (self.up, self.since) = (works, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn health(fall: u32, rise: u32) -> Health {
        let (every, timeout) = (Duration::from_millis(200), Duration::from_millis(300));
        Health { run: vec!["true".into()], every, timeout, fall, rise }
    }

    /// Returns the state of the function after each of these runs: `.` succeeds, `x` fails.
    fn after(mut record: Record, runs: &str, health: &Health) -> String {
        let mut note = |run| {
            let failure = (run == 'x').then(|| "no".to_owned());
            let before = record.up;
            let turned = record.note(failure, health, Instant::now());
            assert_eq!(turned, before != record.up);
            if record.up { 'U' } else { 'd' }
        };
        runs.chars().map(&mut note).collect()
    }

    #[test]
    fn a_function_goes_down_and_up_after_consecutive_results() {
        let check = health(2, 3);
        assert_eq!(after(Record::new(true), "..x.xx...x", &check), "UUUUUdddUU");
        assert_eq!(after(Record::new(true), "xx..x...", &check), "UddddddU");
        assert_eq!(after(Record::new(true), "x.x", &health(1, 1)), "dUd");
    }

    #[test]
    fn the_first_success_suffices_before_any_report() {
        assert_eq!(after(Record::new(false), ".x", &health(2, 3)), "UU");
        assert_eq!(after(Record::new(false), "x...", &health(2, 3)), "dddU");
    }

    #[test]
    fn runs_are_counted() {
        let mut record = Record::new(true);
        for failure in [None, Some("no"), Some("never")] {
            record.note(failure.map(Into::into), &health(9, 9), Instant::now());
        }
        assert_eq!((record.runs, record.failures, record.in_a_row), (3, 2, 2));
        assert_eq!(record.failure.as_deref(), Some("never"));
    }
}
