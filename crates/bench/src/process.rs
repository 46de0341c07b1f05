//! What a process takes.

use anyhow::{Context as _, Result};

/// Clock ticks in a second (`getconf CLK_TCK`): what Linux tells programs everywhere.
const TICKS: f64 = 100.0;

/// A process's time on processors so far, its own and the kernel's, in seconds.
pub(crate) fn seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path)?;
    let ticks = ticks(&text).with_context(|| format!("{path} is cut off"))?;
    Ok(ticks as f64 / TICKS)
}

/// Behind the name, which may hold anything: state is the third field of proc(5), user time the 14th, system
/// time the 15th.
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
