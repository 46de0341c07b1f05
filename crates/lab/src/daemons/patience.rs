//! Timeout for a daemon's start: it is extended while the daemon makes progress.

use std::fs;
use std::time::Duration;

/// Timeout for a daemon that neither answers nor uses CPU time.
const IDLE: Duration = Duration::from_secs(10);
/// Overall timeout, for a daemon that uses CPU time forever without answering.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// Timeout state for a daemon that was started. On a large network it takes long, on a busy machine
/// longer.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// CPU time used so far, in ticks, and the time at which that value was first seen.
    worked: (u64, Duration),
}

impl Patience {
    /// Returns true if the timeout has expired. `since`: time waited so far. `worked`: CPU time
    /// that the daemon has used.
    pub(crate) fn has_ended(&mut self, since: Duration, worked: u64) -> bool {
        if worked > self.worked.0 {
            self.worked = (worked, since);
        }
        since > MAX_WAIT || since.saturating_sub(self.worked.1) > IDLE
    }
}

/// CPU time that a process has used, in kernel clock ticks; 0 if unknown.
pub(crate) fn worked(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // proc_pid_stat(5): comm, in parentheses, may contain any byte; utime and stime are fields 14
    // and 15.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_is_waited_for_and_an_idle_one_is_not() {
        let seconds = Duration::from_secs;
        let mut patience = Patience::default();
        assert!(!patience.has_ended(seconds(9), 0));
        for second in 9..100 {
            assert!(!patience.has_ended(seconds(second), second), "{second}");
        }
        assert!(!patience.has_ended(seconds(109), 99));
        assert!(patience.has_ended(seconds(110), 99));
        assert!(patience.has_ended(seconds(601), 600), "not for ever");
        assert!(Patience::default().has_ended(seconds(11), 0));
    }

    #[test]
    fn a_process_has_worked() {
        let before = worked(std::process::id());
        let mut number = 1_u64;
        while worked(std::process::id()) <= before {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        assert_eq!(worked(u32::MAX), 0, "no such process");
    }
}
