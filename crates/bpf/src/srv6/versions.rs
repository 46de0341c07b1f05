//! Validity of cached lookups: versions of the tables, generations of the kernel's routes, and the
//! heartbeat that keeps a generation valid.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Srv6;

impl Srv6 {
    /// Returns the version of SIDs, prefixes and policies: see [`Srv6::begin_version`].
    pub fn version(&self) -> u32 {
        self.control.read(0).version
    }

    /// Invalidates all cached adjacencies, so that packets look up their routes again.
    pub fn begin_generation(&self) {
        // SAFETY: the field is an aligned word of the mapping, which the program changes with an
        // atomic instruction too.
        count_up(unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).generation) });
    }

    /// Invalidates all cached SIDs and policies, so that packets look them up again. To be called
    /// after SIDs, prefixes or policies have changed, and before new ones are added.
    pub fn begin_version(&self) {
        // SAFETY: the field is an aligned word of the mapping, which only this side writes.
        count_up(unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).version) });
    }

    /// Sets the exactness of route lookups: `true` if the route of a packet may depend on more than
    /// its destination and its port, that is, on policy rules, routes by source or class, or its
    /// flow. The initial value is `true`, which is always correct.
    pub fn set_exact(&self, exact: bool) {
        self.exact.store(if exact { u64::MAX } else { 0 }, Ordering::Relaxed);
        self.write_exact();
    }

    /// Sets whether a route may have a locked MTU. Without one, which is the initial value, forwarded
    /// packets are limited by the MTU of the egress interface.
    pub fn set_locked_mtus(&self, locked: bool) {
        let value = u32::from(locked);
        if self.control.read(0).locked_mtus != value {
            // SAFETY: the pointer is into the mapping; it is one word, which only this side writes.
            unsafe { (&raw mut (*self.control.at(0)).locked_mtus).write_volatile(value) }
            self.begin_generation();
        }
    }

    fn write_exact(&self) {
        let value = self.exact.load(Ordering::Relaxed);
        // SAFETY: the pointer is into the mapping; it is one word, and the value that the timer
        // writes is always correct.
        unsafe { (&raw mut (*self.control.at(0)).exact).write_volatile(value) }
        self.begin_generation();
    }

    /// Signals that route changes are being watched, for LIMIT_TICK_NS plus the rest of the current
    /// tick.
    pub fn heartbeat(&self) {
        // SAFETY: as in `begin_generation`; only this side writes it.
        let heartbeat = unsafe { AtomicU32::from_ptr(&raw mut (*self.control.at(0)).heartbeat) };
        heartbeat.fetch_add(1, Ordering::SeqCst);
        // The timer has overwritten the value after a missed beat.
        if self.control.read(0).exact != self.exact.load(Ordering::Relaxed) {
            self.write_exact();
        }
    }
}

/// Increments a number, skipping 0, which stands for none.
fn count_up(number: &AtomicU32) {
    if number.fetch_add(1, Ordering::SeqCst) == u32::MAX {
        number.fetch_add(1, Ordering::SeqCst);
    }
}
