//! Rate limit for warnings that any peer can cause.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two warnings.
const INTERVAL: Duration = Duration::from_secs(1);

/// Logs one warning per second at most. The next one has the number of suppressed ones.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Instant>,
    suppressed: u64,
}

impl Warnings {
    pub(crate) fn warn(&self, what: impl Display) {
        match self.due(Instant::now()) {
            None => {}
            Some(0) => tracing::warn!("{what}"),
            Some(suppressed) => {
                tracing::warn!("{what} ({suppressed} similar warnings were suppressed)");
            }
        }
    }

    /// Returns the number of suppressed warnings if one may be logged now.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            state.suppressed += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_a_second_counts_the_suppressed_ones() {
        let (warnings, start) = (Warnings::default(), Instant::now());
        let at = |ms| warnings.due(start + Duration::from_millis(ms));
        assert_eq!([at(0), at(1), at(999)], [Some(0), None, None]);
        assert_eq!([at(1000), at(1001), at(2000)], [Some(2), None, Some(1)]);
        assert_eq!(at(9000), Some(0));
    }
}
