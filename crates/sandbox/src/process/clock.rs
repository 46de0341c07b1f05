//! The time that a program sees, and the readings of its tenant's VM at that time.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use p4::vm::{MAX_KEYS, Reading};

use super::readings::Readings;
use crate::instance::Instance;

/// The machine's time as of the last look, and the VM's values as of then.
#[derive(Debug)]
pub(super) struct Clock {
    readings: Readings,
    seen: [Option<Reading>; MAX_KEYS],
    now: Duration,
    /// The time that was set since then, if one was.
    set: Option<Option<u64>>,
}

impl Clock {
    /// A clock beside the rings in their memory.
    pub(super) fn new(rings: impl AsFd) -> Result<Self, Errno> {
        let readings = Readings::new(rings)?;
        Ok(Self { readings, seen: [None; MAX_KEYS], now: Duration::ZERO, set: None })
    }

    /// Reads the machine's clock, and the VM's new values.
    pub(super) fn look(&mut self) {
        self.readings.read(&mut self.seen);
        // After that: nothing was counted later than now.
        self.now = since_start();
        self.set = None;
    }

    /// Sets an instance's time, the same instance's until the next look: the packet's own, or the machine's as of the last look. Readings are then
    /// as old and as fresh as they are on the machine's clock.
    pub(super) fn set(&mut self, instance: &mut Instance, at_ns: Option<u64>) {
        if self.set.replace(at_ns) == Some(at_ns) {
            return;
        }
        let machine = u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX);
        for (to, seen) in instance.vm_info().iter_mut().zip(&self.seen) {
            *to = match at_ns {
                Some(at) => seen.map(|reading| moved(reading, machine, at)),
                None => *seen,
            };
        }
        instance.set_time(at_ns.map_or(self.now, Duration::from_nanos));
    }
}

/// The same reading on another clock.
fn moved(reading: Reading, machine: u64, at: u64) -> Reading {
    let fresh = Reading::fresh(reading.value, reading.age_ns(machine), at);
    if reading.is_fresh(machine) { fresh } else { fresh.stale() }
}

/// The time since the machine's start, which takes no system call.
fn since_start() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to where it says.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}
