//! Converts counters to rates: the current load of one interface or application.

use std::collections::VecDeque;

/// The number of samples over which a rate is averaged. A single sample can catch a burst, or a
/// sender that was not scheduled.
const RATE_SAMPLES: usize = 3;
/// The number of samples over which congestion is judged: one second at 100 ms.
const CONGESTION_SAMPLES: usize = 10;

/// Counters at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The time in ns, on any monotonic clock.
    pub at_ns: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Packets lost for other reasons, which do not indicate congestion.
    pub lost: u64,
    /// Bytes queued.
    pub backlog_bytes: u64,
}

/// The load computed from the last samples.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Bits per second.
    pub rate_bps: u64,
    /// The fraction of packets that the queue dropped or that were lost otherwise, 0 to 1.
    pub loss: f64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// True if the queue dropped packets or was not empty in at least half of the samples of the
    /// last second.
    pub congested: bool,
}

/// The last samples.
#[derive(Debug, Clone, Default)]
pub struct Window {
    samples: VecDeque<Counters>,
}

impl Window {
    /// Adds a sample. Counters that decrease belong to a new device, so earlier samples are
    /// discarded.
    pub fn push(&mut self, sample: Counters) {
        if self.samples.back().is_some_and(|last| {
            sample.bytes < last.bytes
                || sample.drops < last.drops
                || sample.lost < last.lost
                || sample.at_ns <= last.at_ns
        }) {
            self.samples.clear();
        }
        self.samples.push_back(sample);
        if self.samples.len() > CONGESTION_SAMPLES + 1 {
            self.samples.pop_front();
        }
    }

    /// Returns true if there are two samples, as a rate requires.
    pub fn has_rate(&self) -> bool {
        self.samples.len() > 1
    }

    /// The current load; zero until there are two samples.
    pub fn load(&self) -> Load {
        let Some(last) = self.samples.back() else { return Load::default() };
        let back = self.samples.len().saturating_sub(RATE_SAMPLES + 1);
        let first = self.samples[back];
        let elapsed_ns = last.at_ns - first.at_ns;
        if elapsed_ns == 0 {
            return Load { backlog_bytes: last.backlog_bytes, ..Load::default() };
        }
        let bits = u128::from(last.bytes - first.bytes) * 8;
        let rate_bps = bits * 1_000_000_000 / u128::from(elapsed_ns);
        let sent = last.packets.saturating_sub(first.packets);
        let dropped = last.drops - first.drops + (last.lost - first.lost);
        let loss = if dropped == 0 { 0.0 } else { dropped as f64 / (sent + dropped) as f64 };
        Load {
            rate_bps: u64::try_from(rate_bps).unwrap_or(u64::MAX),
            loss,
            backlog_bytes: last.backlog_bytes,
            congested: self.is_congested(),
        }
    }

    fn is_congested(&self) -> bool {
        let steps = self.samples.iter().zip(self.samples.iter().skip(1));
        let full = steps.filter(|(a, b)| b.drops > a.drops || b.backlog_bytes > 0).count();
        full * 2 >= CONGESTION_SAMPLES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(samples: impl IntoIterator<Item = (u64, u64, u64)>) -> Window {
        let mut window = Window::default();
        for (at, (bytes, drops, backlog_bytes)) in samples.into_iter().enumerate() {
            let at_ns = (at as u64 + 1) * 100_000_000;
            let packets = bytes / 1000;
            window.push(Counters { at_ns, bytes, packets, drops, lost: 0, backlog_bytes });
        }
        window
    }

    #[test]
    fn a_rate_is_the_mean_of_three_intervals() {
        assert_eq!(window([]).load(), Load::default());
        assert_eq!(window([(5000, 0, 0)]).load().rate_bps, 0);
        // 1,000, 2,000 and 3,000 bytes in 300 ms; earlier samples do not count.
        let load =
            window([(0, 0, 0), (9_000, 0, 0), (10_000, 0, 0), (12_000, 0, 0), (15_000, 0, 0)]);
        assert_eq!(load.load().rate_bps, 160_000);
    }

    #[test]
    fn loss_is_the_part_that_was_dropped() {
        let load = window([(0, 0, 0), (3_000, 1, 500)]).load();
        assert_eq!((load.loss, load.backlog_bytes), (0.25, 500));
    }

    #[test]
    fn a_queue_that_stands_half_of_the_time_is_congested() {
        let steady = |full: u64| {
            window((0..11).map(|n| (n * 1000, 0, u64::from(n < full) * 100))).load().congested
        };
        assert!(!steady(5));
        assert!(steady(6));
        let dropping = window((0..11).map(|n| (n * 1000, n / 2, 0))).load();
        assert!(dropping.congested);
        assert!(!window([(0, 0, 0), (1000, 5, 100)]).load().congested);
    }

    #[test]
    fn other_losses_are_not_congestion() {
        let mut window = Window::default();
        for n in 0..11 {
            let (at_ns, packets) = ((n + 1) * 100_000_000, 3 * n);
            window.push(Counters { at_ns, packets, lost: n, ..Counters::default() });
        }
        let load = window.load();
        assert_eq!((load.loss, load.congested), (0.25, false));
    }

    #[test]
    fn counters_that_go_back_restart_the_window() {
        assert_eq!(window([(50_000, 0, 0), (100, 0, 0)]).load().rate_bps, 0);
        assert_eq!(window([(50_000, 0, 0), (100, 0, 0), (1100, 0, 0)]).load().rate_bps, 80_000);
    }
}
