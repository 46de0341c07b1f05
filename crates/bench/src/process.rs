//! Resource usage of a process.

use anyhow::{Context as _, Result};

/// Clock ticks per second (`getconf CLK_TCK`), the same on all Linux systems.
const TICKS: f64 = 100.0;

/// Returns the CPU time of a process so far in seconds, user and system.
pub(crate) fn seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path)?;
    let ticks = ticks(&text).with_context(|| format!("{path} is cut off"))?;
    Ok(ticks as f64 / TICKS)
}

/// Parses the fields after the process name, which may contain any character: in proc(5) the state
/// is the third field, user time the 14th and system time the 15th.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_and_blanks_are_passed_over() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 1 2 3 4 31 11 0 0 20 0";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1 7 7 0 -1 4 1 2 3 4 31"), None);
        assert!(seconds(std::process::id()).is_ok());
    }
}
