//! Time as the program sees it, and the readings of its tenant's VM at that time.

use std::time::Duration;

use p4_object::vm::{MAX_KEYS, Reading};

use super::readings::Readings;
use crate::instance::Instance;

/// Host time at the last update, with the VM's values as of then.
#[derive(Debug)]
pub(super) struct Clock {
    readings: Readings,
    seen: [Option<Reading>; MAX_KEYS],
    now: Duration,
    /// Difference of the host's clock to that of this machine, a guest of the host or the host itself.
    offset: Duration,
    /// Packet time applied since the last update; `None` if no time has been applied.
    set: Option<Option<u64>>,
}

impl Clock {
    /// Creates a clock with the readings in the rings' memory.
    pub(super) fn new(readings: Readings) -> Self {
        let (now, offset) = (Duration::ZERO, Duration::ZERO);
        Self { readings, seen: [None; MAX_KEYS], now, offset, set: None }
    }

    /// Adds this difference to the clock of this machine.
    pub(super) fn adjust(&mut self, offset: Duration) {
        self.offset = offset;
    }

    /// Reads the host clock and new VM values.
    pub(super) fn look(&mut self) {
        self.readings.read(&mut self.seen);
        // Read the clock after the values, so that no value has a timestamp in the future.
        self.now = since_start() + self.offset;
        self.set = None;
    }

    /// Sets the time of an instance: the packet's own time, or the host time of the last update. It
    /// has to be the same instance until the next update. Readings keep the age and the freshness
    /// that they have on the host clock.
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

/// Converts a reading to another clock.
fn moved(reading: Reading, machine: u64, at: u64) -> Reading {
    let fresh = Reading::fresh(reading.value, reading.age_ns(machine), at);
    if reading.is_fresh(machine) { fresh } else { fresh.stale() }
}

/// Time since boot, through the vDSO.
pub(super) fn since_start() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
}
