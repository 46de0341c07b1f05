//! Deadlines that a process misses.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum time for which a process may wait for a CPU while packets wait for it, and maximum time
/// for which they wait for its requests.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);

/// Sequences of missed deadlines, by queue: a verdict in one queue does not excuse a missed deadline in
/// another.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BTreeMap<u32, Missed>);

/// A sequence of missed deadlines of a queue.
#[derive(Debug, Clone, Copy)]
struct Missed {
    first: Progress,
    last: Progress,
}

/// Progress of a process at a missed deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) time: Instant,
    /// CPU time.
    pub(super) ran: Duration,
    /// Time for which it has handled requests of a control plane.
    pub(super) busy: Duration,
    /// Number of verdicts of the queue, modulo 2^32.
    pub(super) verdicts: u32,
    pub(super) is_runnable: bool,
}

impl Deadlines {
    /// Records a missed deadline of a queue, and returns true if the process is to blame: since the
    /// first missed one it has run for a deadline without a request, or it sleeps and has answered
    /// nothing, or it takes too long in any case.
    pub(super) fn is_late(&mut self, queue: u32, now: Progress, deadline: Duration) -> bool {
        // No deadline is noticed during a request.
        let is_same = |missed: &Missed| {
            let busy = now.busy.saturating_sub(missed.last.busy);
            now.time - missed.last.time < 3 * deadline + busy
        };
        let known = self.0.get(&queue).copied().filter(is_same);
        let missed = known.unwrap_or(Missed { first: now, last: now });
        self.0.insert(queue, Missed { last: now, ..missed });
        if known.is_none() {
            return false;
        }
        let first = missed.first;
        let busy = now.busy.saturating_sub(first.busy).min(MAX_WAIT);
        let has_run = now.ran.saturating_sub(first.ran) >= deadline + busy;
        let is_stuck = now.verdicts == first.verdicts && !now.is_runnable;
        has_run || is_stuck || now.time - first.time > MAX_WAIT + busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_millis(100);

    /// Progress after `time` ms, of which it has run for `ran` and handled requests for `busy`.
    fn progress(begin: Instant, time: u64, ran: u64, busy: u64, verdicts: u32) -> Progress {
        let [time, ran, busy] = [time, ran, busy].map(Duration::from_millis);
        Progress { time: begin + time, ran, busy, verdicts, is_runnable: true }
    }

    #[test]
    fn queues_excuse_no_missed_deadlines_of_each_other() {
        let (mut deadlines, begin) = (Deadlines::default(), Instant::now());
        assert!(!deadlines.is_late(1, progress(begin, 100, 100, 0, 0), DEADLINE));
        assert!(!deadlines.is_late(2, progress(begin, 150, 150, 0, 0), DEADLINE));
        assert!(deadlines.is_late(1, progress(begin, 200, 200, 0, 0), DEADLINE));
        assert!(deadlines.is_late(2, progress(begin, 250, 250, 0, 0), DEADLINE));
    }

    #[test]
    fn requests_excuse_missed_deadlines_for_a_time() {
        let begin = Instant::now();
        for step in [100, 400] {
            let mut deadlines = Deadlines::default();
            let is_late = |time: &u64| {
                let verdicts = u32::try_from(*time).unwrap();
                deadlines.is_late(1, progress(begin, *time, *time, *time, verdicts), DEADLINE)
            };
            let late = (1..400).map(|number| step * number).find(is_late).expect("it is late");
            let first = MAX_WAIT.as_millis() as u64 + 100 + step;
            assert!((first..first + step).contains(&late), "{late}");
        }
    }

    #[test]
    fn a_process_that_waits_for_a_processor_is_late_after_a_maximum_time() {
        let (mut deadlines, begin) = (Deadlines::default(), Instant::now());
        let is_late = |deadlines: &mut Deadlines, time| {
            deadlines.is_late(1, progress(begin, time, 0, 0, 0), DEADLINE)
        };
        assert!((1..=101).all(|number| !is_late(&mut deadlines, 100 * number)));
        assert!(is_late(&mut deadlines, 10_200));
        // After a pause another sequence begins.
        assert!(!is_late(&mut deadlines, 10_600));
        let asleep = Progress { is_runnable: false, ..progress(begin, 10_700, 0, 0, 0) };
        assert!(deadlines.is_late(1, asleep, DEADLINE));
    }
}
