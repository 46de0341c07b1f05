//! Evaluation of a sequence of pings.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use model::topology::Ping;

use crate::{Observation, milliseconds};

/// A ping that was sent.
#[derive(Debug, Clone, Copy)]
struct Echo {
    sent: Instant,
    answer: Option<Duration>,
}

/// A sliding window over the most recent pings of a sequence.
#[derive(Debug)]
pub(crate) struct Window {
    /// Ordered by number; `last` is the number of the last one.
    echoes: VecDeque<Echo>,
    last: u64,
    /// Timeout for a reply.
    patience: Duration,
}

/// Capacity: more than any test needs, and more than the number of pings in flight.
const MAX_SAMPLES: usize = 20_000;

impl Window {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { echoes: VecDeque::new(), last: 0, patience }
    }

    /// Records that ping `number`, counted from 1, was sent before `now`.
    pub(crate) fn sent(&mut self, number: u64, now: Instant) {
        while self.last < number {
            self.last += 1;
            self.echoes.push_back(Echo { sent: now, answer: None });
        }
        while self.echoes.len() > MAX_SAMPLES {
            self.echoes.pop_front();
        }
    }

    /// Records that ping `number` was answered at `now` after `time`.
    pub(crate) fn answered(&mut self, number: u64, time: Duration, now: Instant) {
        let sent = now.checked_sub(time).unwrap_or(now);
        self.sent(number, sent);
        let back = usize::try_from(self.last - number).unwrap_or(usize::MAX);
        let index = self.echoes.len().checked_sub(back.saturating_add(1));
        if let Some(echo) = index.and_then(|index| self.echoes.get_mut(index)) {
            echo.answer = Some(time);
        }
    }

    /// Number of the last known ping.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Evaluates a test against the window.
    pub(crate) fn judge(&self, test: &Ping, now: Instant) -> Observation {
        let count = test.count as usize;
        let is_settled = |echo: &&Echo| echo.answer.is_some() || echo.sent + self.patience < now;
        let row: Vec<Echo> = if test.unreachable || test.loss.is_some() {
            self.echoes.iter().take_while(is_settled).copied().collect()
        } else {
            self.echoes.iter().filter(|echo| echo.answer.is_some()).copied().collect()
        };
        let row = &row[row.len().saturating_sub(count)..];
        let mut answers: Vec<Duration> = row.iter().filter_map(|echo| echo.answer).collect();
        answers.sort_unstable();
        let median = answers.get(answers.len() / 2).copied();
        let lost = row.len() - answers.len();
        let measured = match (row.len(), median) {
            _ if test.loss.is_some() && !row.is_empty() => {
                let median = median.map_or(String::new(), |m| format!(", {}", milliseconds(m)));
                format!(
                    "{:.1}% of {} lost{median}",
                    100.0 * lost as f64 / row.len() as f64,
                    row.len()
                )
            }
            (_, Some(median)) => milliseconds(median),
            _ => "no answer".into(),
        };
        let holds = row.len() == count
            && (!test.unreachable || answers.is_empty())
            && test
                .rtt
                .is_none_or(|rtt| median.is_some_and(|m| (rtt.from.0..=rtt.to.0).contains(&m)))
            && test.loss.is_none_or(|loss| {
                let share = lost as f64 / row.len() as f64;
                (loss.from.part()..=loss.to.part()).contains(&share)
            });
        let holds_since = row.first().map(|echo| echo.sent).filter(|_| holds);
        Observation { holds_since, measured }
    }
}

#[cfg(test)]
mod tests {
    use model::topology::{DurationText, Range, Share};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    fn test(count: u32) -> Ping {
        Ping {
            from: "h1".into(),
            to: "h2".into(),
            family: None,
            unreachable: false,
            rtt: None,
            loss: None,
            count,
            within: DurationText(TIMEOUT),
        }
    }

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Builds a window of pings, 100 ms apart, from their round-trip times, and returns it with the
    /// start and end times.
    fn row(answers: &[Option<u64>]) -> (Window, Instant, Instant) {
        let started = Instant::now();
        let mut window = Window::new(TIMEOUT);
        let mut now = started;
        for (number, answer) in (1..).zip(answers) {
            window.sent(number, now);
            if let Some(time) = answer {
                window.answered(number, ms(*time), now + ms(*time));
            }
            now += ms(100);
        }
        (window, started, now)
    }

    #[test]
    fn the_first_answer_says_since_when_a_node_is_reached() {
        let (window, started, now) = row(&[None, None, Some(20), Some(20)]);
        let seen = window.judge(&test(1), now);
        // Only the newest counts: a caller that checks after each reply sees the first one.
        assert_eq!(seen.holds_since, Some(started + ms(300)));
        assert_eq!(seen.measured, "20.00ms");
        let (window, _, now) = row(&[None, None]);
        assert_eq!(window.judge(&test(1), now).holds_since, None);
        assert_eq!(window.judge(&test(1), now).measured, "no answer");
    }

    #[test]
    fn a_round_trip_is_the_median_of_the_last_answers() {
        let range = Range { from: DurationText(ms(40)), to: DurationText(ms(48)) };
        let rtt = Ping { rtt: Some(range), ..test(3) };
        let (window, started, now) = row(&[Some(90), Some(41), None, Some(95), Some(48)]);
        let seen = window.judge(&rtt, now);
        assert_eq!((seen.holds_since, &*seen.measured), (Some(started + ms(100)), "48.00ms"));
        let (window, _, now) = row(&[Some(41), Some(49), Some(49)]);
        assert_eq!(window.judge(&rtt, now).holds_since, None);
        let (window, _, now) = row(&[Some(41), Some(41)]);
        assert_eq!(window.judge(&rtt, now).holds_since, None);
    }

    #[test]
    fn a_ping_is_lost_when_its_time_is_over() {
        let share = |percent| Share::from_percent(percent).unwrap();
        let loss = Ping { loss: Some(Range { from: share(40.0), to: share(60.0) }), ..test(4) };
        let (window, started, now) = row(&[Some(1), None, None, Some(1)]);
        assert_eq!(window.judge(&loss, now).holds_since, None);
        let seen = window.judge(&loss, now + TIMEOUT);
        assert_eq!(seen.holds_since, Some(started));
        assert_eq!(seen.measured, "50.0% of 4 lost, 1.00ms");
        let (window, _, now) = row(&[Some(1), None, None, None]);
        assert_eq!(window.judge(&loss, now + TIMEOUT).holds_since, None);
    }

    #[test]
    fn an_unreachable_node_answers_none_of_the_last() {
        let unreachable = Ping { unreachable: true, ..test(2) };
        let (window, started, now) = row(&[Some(1), None, None]);
        assert_eq!(window.judge(&unreachable, now).holds_since, None);
        let seen = window.judge(&unreachable, now + TIMEOUT);
        assert_eq!((seen.holds_since, &*seen.measured), (Some(started + ms(100)), "no answer"));
        let (window, _, now) = row(&[None, None, Some(1)]);
        assert_eq!(window.judge(&unreachable, now + TIMEOUT).holds_since, None);
    }
}
