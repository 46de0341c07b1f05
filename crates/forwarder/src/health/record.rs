//! What checks have said of a service function, and what follows from it.

use std::time::Instant;

use model::dataplane::Health;

/// What is known of a service function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Whether others may be told of it.
    pub(crate) up: bool,
    /// Since when, as far as this daemon knows.
    pub(crate) since: Instant,
    /// How many runs in a row had the last one's result.
    pub(crate) in_a_row: u32,
    /// How many runs there were, and how many of them failed.
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    /// How many could not be started, which says nothing of the function; they are not among the runs.
    pub(crate) not_started: u64,
    /// Why the last one failed; none if it did not.
    pub(crate) failure: Option<String>,
}

impl Record {
    /// Nothing but what was so before.
    pub(crate) fn new(up: bool) -> Self {
        let since = Instant::now();
        Self { up, since, in_a_row: 0, runs: 0, failures: 0, not_started: 0, failure: None }
    }

    /// Notes a run's result, none for success. True if the function has gone up or down by it. What
    /// was not up before is up with the first success, if that is the first result.
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

    /// Whether the function is up after each of these runs: `.` succeeds, `x` fails.
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
    fn a_function_goes_down_and_up_after_so_many_results_in_a_row() {
        let check = health(2, 3);
        assert_eq!(after(Record::new(true), "..x.xx...x", &check), "UUUUUdddUU");
        assert_eq!(after(Record::new(true), "xx..x...", &check), "UddddddU");
        assert_eq!(after(Record::new(true), "x.x", &health(1, 1)), "dUd");
    }

    #[test]
    fn the_first_success_is_enough_for_what_was_never_told_of() {
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
