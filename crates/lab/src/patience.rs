//! How long a daemon is waited for: as long as it is at work.

use std::fs;
use std::time::Duration;

/// How long a daemon may do nothing and not answer.
const IDLE: Duration = Duration::from_secs(10);
/// How long it may take at all: one that works for ever does not answer either.
const MOST: Duration = Duration::from_secs(600);

/// A wait for a daemon that was started. A large network takes it long, and a busy machine longer.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// What it has worked so far, in ticks, and when that was seen first.
    worked: (u64, Duration),
}

impl Patience {
    /// Whether it has been waited for long enough. `since`: how long so far. `worked`: the processor's time that it
    /// has used.
    pub(crate) fn has_ended(&mut self, since: Duration, worked: u64) -> bool {
        if worked > self.worked.0 {
            self.worked = (worked, since);
        }
        since > MOST || since.saturating_sub(self.worked.1) > IDLE
    }
}

/// The processor's time that a process has used, in ticks of the kernel's; 0 if it is not known.
pub(crate) fn worked(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // proc_pid_stat(5): the name, in parentheses, may hold anything; utime and stime are fields 14 and 15.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_is_waited_for_and_who_does_nothing_is_not() {
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
        assert_eq!(worked(u32::MAX), 0, "there is no such process");
    }
}
