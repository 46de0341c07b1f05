//! Rate limit of ICMP errors (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)).

use crate::Nanos;

/// Mean time between two errors.
const INTERVAL: Nanos = 1_000_000;
/// Maximum number of errors at once.
const BURST: u64 = 1000;

/// Token bucket of the errors about packets of one interface.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budget {
    /// Time at which the bucket is full.
    full: Nanos,
}

impl Budget {
    /// Takes a token. Returns false if there is none.
    pub(super) fn take(&mut self, now: Nanos) -> bool {
        let full = self.full.max(now);
        let has_token = full - now <= (BURST - 1) * INTERVAL;
        if has_token {
            self.full = full.saturating_add(INTERVAL);
        }
        has_token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_one_error_in_an_interval() {
        let mut budget = Budget::default();
        let taken = |budget: &mut Budget, now| (0..2 * BURST).filter(|_| budget.take(now)).count();
        assert_eq!(taken(&mut budget, 5), BURST as usize);
        assert_eq!(taken(&mut budget, 5 + INTERVAL - 1), 0);
        assert_eq!(taken(&mut budget, 5 + INTERVAL), 1);
        assert_eq!(taken(&mut budget, 5 + 8 * INTERVAL), 7);
        assert_eq!(taken(&mut budget, Nanos::MAX / 2), BURST as usize);
    }
}
