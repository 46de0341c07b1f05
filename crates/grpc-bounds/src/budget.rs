//! Memory budget shared by all requests of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A message of at most this size is not counted, so that arbitration and ping replies still work
/// when others have exhausted the budget.
const FREE: u64 = 4096;

/// Memory budget for all requests of a process: one pool for privileged callers, and one for all
/// others, who cannot exhaust the first.
#[derive(Debug, Clone)]
pub struct Budget(Arc<[Pool; 2]>);

#[derive(Debug)]
struct Pool {
    most: u64,
    used: AtomicU64,
}

impl Pool {
    fn new(most: u64) -> Self {
        Self { most, used: AtomicU64::new(0) }
    }

    fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.most);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }
}

impl Budget {
    /// Creates a budget with pools of these sizes in bytes.
    pub fn new(privileged: u64, others: u64) -> Self {
        Self(Arc::new([Pool::new(others), Pool::new(privileged)]))
    }

    /// Number of bytes that requests hold now.
    pub fn used(&self) -> u64 {
        self.0.iter().map(|pool| pool.used.load(Ordering::Relaxed)).sum()
    }

    /// Reserves this number of bytes in the pool for privileged callers, or in that for all others.
    /// `None` if the pool is exhausted.
    pub fn reserve(&self, bytes: u64, is_privileged: bool) -> Option<Reservation> {
        let reservation = self.empty_reservation();
        reservation.grow(bytes, is_privileged).then_some(reservation)
    }

    /// Creates an empty reservation.
    pub fn empty_reservation(&self) -> Reservation {
        Reservation(Arc::new(Part { of: self.clone(), bytes: Default::default() }))
    }
}

/// A call's reservation in the budget, released when the last clone is dropped. It is an extension
/// of the request, so that jobs can hold it beyond the end of the call.
#[derive(Debug, Clone)]
pub struct Reservation(Arc<Part>);

#[derive(Debug)]
struct Part {
    of: Budget,
    /// Bytes from each pool: a caller may become privileged during the call. Only one task changes
    /// them.
    bytes: [AtomicU64; 2],
}

impl Part {
    fn has(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Acquire)).sum()
    }
}

impl Reservation {
    /// Grows the reservation to at least this size in bytes. Returns false if the pool is exhausted.
    pub fn grow(&self, bytes: u64, is_privileged: bool) -> bool {
        let bytes = if bytes <= FREE { 0 } else { bytes };
        let more = bytes.checked_sub(self.0.has()).filter(|more| *more > 0);
        let Some(more) = more else { return true };
        let pool = usize::from(is_privileged);
        let taken = self.0.of.0[pool].take(more);
        if taken {
            self.0.bytes[pool].fetch_add(more, Ordering::AcqRel);
        }
        taken
    }

    /// Shrinks the reservation to at most this size.
    pub(crate) fn shrink(&self, bytes: u64) {
        let bytes = if bytes <= FREE { 0 } else { bytes };
        let mut back = self.0.has().saturating_sub(bytes);
        for (pool, has) in self.0.of.0.iter().zip(&self.0.bytes) {
            let part = back.min(has.load(Ordering::Acquire));
            has.fetch_sub(part, Ordering::AcqRel);
            pool.give_back(part);
            back -= part;
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for (pool, has) in self.of.0.iter().zip(&self.bytes) {
            pool.give_back(has.load(Ordering::Acquire));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_given_back_with_its_last_clone() {
        let budget = Budget::new(100_000, 50_000);
        let (one, other) = (budget.empty_reservation(), budget.empty_reservation());
        assert!(one.grow(40_000, false) && one.grow(30_000, false));
        assert_eq!(budget.used(), 40_000);
        assert!(!other.grow(20_000, false), "others have no more");
        assert!(other.grow(100_000, true) && !other.grow(100_001, true));
        assert!(one.clone().grow(40_000, false));
        let last = one.clone();
        drop(one);
        assert_eq!(budget.used(), 140_000);
        drop(last);
        other.shrink(5000);
        assert_eq!(budget.used(), 5000);
        other.shrink(10);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn small_messages_pass_when_all_is_used() {
        let budget = Budget::new(10_000, 10_000);
        let all = budget.empty_reservation();
        assert!(all.grow(10_000, false));
        assert!(
            budget.empty_reservation().grow(FREE, false)
                && !budget.empty_reservation().grow(FREE + 1, false)
        );
    }

    #[test]
    fn a_caller_that_becomes_privileged_gives_each_pool_its_own_back() {
        let budget = Budget::new(50_000, 50_000);
        let one = budget.empty_reservation();
        assert!(one.grow(40_000, false) && one.grow(80_000, true));
        one.shrink(60_000);
        assert_eq!(budget.used(), 60_000);
        drop(one);
        assert!(
            budget.empty_reservation().grow(50_000, false)
                && budget.empty_reservation().grow(50_000, true)
        );
    }
}
