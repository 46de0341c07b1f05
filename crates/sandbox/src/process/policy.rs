//! Policy for programs that fail.

use std::time::Duration;

use sandbox_queue::Policy;

use super::isolation::Isolation;
use crate::program::Limits;

/// Back-off of process restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackOff {
    /// Delay after the first failure. Doubled with each further failure.
    pub first: Duration,
    /// Maximum delay.
    pub most: Duration,
    /// Number of failures within [`BackOff::window`] that evicts the tenant.
    pub failures: usize,
    /// Time window in which failures are counted.
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
    /// Delay after this number of failures.
    pub(super) fn wait(&self, failures: usize) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// Rate limit for digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestRate {
    /// Digests per second.
    pub rate: u32,
    /// Burst size.
    pub burst: u32,
}

/// Configuration of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Policy for packets without a verdict.
    pub policy: Policy,
    /// Deadline of a packet's verdict.
    pub deadline: Duration,
    /// Maximum number of packets in flight; rounded up to a power of two.
    pub places: u32,
    /// Number of queues for other threads or processes, in addition to the sandbox's own. See
    /// [`Shared`](super::Shared).
    pub queues: u32,
    /// Time for which the process polls for packets before it sleeps.
    pub spin: Duration,
    /// Run the process with SCHED_IDLE until it misses a deadline: while it polls, it gives way to
    /// all others.
    pub is_background: bool,
    /// Resource limits of the program.
    pub limits: Limits,
    /// Back-off of process restarts.
    pub back_off: BackOff,
    /// Rate limit for digests.
    pub digests: DigestRate,
    /// CPU limit of the process, in percent of one CPU, where control groups are available; `None`
    /// for no limit.
    pub cpu: Option<u32>,
    /// Isolation required before the program is loaded.
    pub requires: Isolation,
    /// Time limit for loading a program.
    pub load_time: Duration,
    /// Time limit for an answer on the control socket.
    pub answer_time: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            policy: Policy::Closed,
            deadline: Duration::from_millis(100),
            places: 1024,
            queues: 0,
            spin: Duration::from_micros(50),
            is_background: false,
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

impl Config {
    /// Returns the configuration of a virtual machine: more time, since a boot takes seconds without
    /// KVM, and no SCHED_IDLE, since an emulated CPU needs more time for each packet.
    #[must_use]
    pub fn in_vm(self) -> Self {
        let requires = Isolation::REQUIRED_OF_VM;
        let (load_time, answer_time) = (Duration::from_secs(120), Duration::from_secs(10));
        Self { is_background: false, requires, load_time, answer_time, ..self }
    }

    /// Parts of the isolation whose absence is reported: the usual ones, even if [`Config::requires`]
    /// has fewer, and the CPU limit if there is one.
    pub(super) fn expects(&self) -> Isolation {
        let usual = match self.requires.has(Isolation::MACHINE) {
            true => Isolation::REQUIRED_OF_VM,
            false => Isolation::REQUIRED,
        };
        match self.cpu {
            Some(_) => usual.with(Isolation::CPU),
            None => usual,
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
