//! What is done when a program does not do its work.

use std::time::Duration;

use super::isolation::Isolation;
use crate::program::Limits;

/// What comes of packets for which a program has no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// They are dropped.
    #[default]
    Closed,
    /// They go on where they were going.
    Open,
}

/// When a process is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// The wait behind the first failure; doubled with each other one.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// With so many failures within [`BackOff::window`] the tenant is evicted.
    pub failures: usize,
    /// How long a failure counts.
    pub window: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(10),
            most: Duration::from_secs(5),
            failures: 8,
            window: Duration::from_secs(60),
        }
    }
}

impl BackOff {
    /// The wait behind so many failures.
    pub(super) fn wait(&self, failures: usize) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// How many digests a program may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestRate {
    /// So many a second.
    pub rate: u32,
    /// So many at once.
    pub burst: u32,
}

/// How a tenant's program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// What comes of packets without a verdict.
    pub policy: Policy,
    /// How long a packet may wait for its verdict.
    pub deadline: Duration,
    /// The most packets on their way; the next power of two is taken.
    pub places: u32,
    /// How long the process looks for packets before it sleeps.
    pub spin: Duration,
    /// What the program may take.
    pub limits: Limits,
    /// When a process is started again.
    pub back_off: BackOff,
    /// Digests that a program may send.
    pub digests: DigestRate,
    /// Hundredths of a processor that the process may take, where there are control groups; None is all
    /// that nobody else wants.
    pub cpu: Option<u32>,
    /// What the process has to be kept from before it is given a program.
    pub requires: Isolation,
    /// How long it may take to load a program.
    pub load_time: Duration,
    /// How long an answer on the control socket may take.
    pub answer_time: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::Closed,
            deadline: Duration::from_millis(100),
            places: 1024,
            spin: Duration::from_micros(50),
            limits: Limits::default(),
            back_off: BackOff::default(),
            digests: DigestRate { rate: 10_000, burst: 1000 },
            cpu: None,
            requires: Isolation::REQUIRED,
            load_time: Duration::from_secs(30),
            answer_time: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double() {
        let back_off = BackOff::default();
        let waits = [1, 2, 3, 99].map(|failures| back_off.wait(failures).as_millis());
        assert_eq!(waits, [10, 20, 40, 5000]);
    }
}
