//! CPU utilization.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vminfo::Unit;

use super::{Board, Source, per_mille};

pub(super) struct Cpu {
    proc: PathBuf,
    /// Previous counters: busy ticks and all ticks.
    before: Option<(u64, u64)>,
}

impl Cpu {
    pub(super) fn new(proc: &Path) -> Self {
        Self { proc: proc.to_owned(), before: None }
    }
}

impl Source for Cpu {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        if let Ok(text) = fs::read_to_string(self.proc.join("stat")) {
            let is_one = |line: &&str| {
                line.strip_prefix("cpu")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            to.set("cpu.count", Unit::Number, text.lines().filter(is_one).count() as u64);
            if let Some(now) = times(&text)
                && let Some(before) = self.before.replace(now)
            {
                let [busy, all] = [(now.0, before.0), (now.1, before.1)]
                    .map(|(new, old)| new.saturating_sub(old) as f64);
                // Ticks are 10 ms: no tick may have been counted in a shorter interval.
                if all > 0.0 {
                    to.set("cpu.utilisation", Unit::PerMille, per_mille(busy, all));
                }
            }
        }
        let load = fs::read_to_string(self.proc.join("loadavg")).ok();
        let load = load.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        if let Some(load) = load {
            to.set("cpu.load", Unit::PerMille, (load * 1000.0).round() as u64);
        }
    }
}

/// Returns the busy ticks and all ticks of all CPUs (proc(5), /proc/stat).
fn times(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guest times are included in these.
    let ticks: Vec<u64> =
        line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
    Some((all - idle, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::Bed;

    #[test]
    fn utilisation_is_the_time_that_is_not_idle() {
        let mut bed = Bed::new();
        let proc = bed.directory().to_owned();
        let mut cpu = Cpu::new(&proc);
        let names = ["cpu.utilisation", "cpu.count", "cpu.load"];
        let now = Instant::now();
        let write = |line: &str| {
            fs::write(proc.join("stat"), format!("cpu  {line}\ncpu0 1\ncpu1 1\nintr 5\n")).unwrap();
        };
        fs::write(proc.join("loadavg"), "1.25 0 0 2/300 77\n").unwrap();
        write("100 0 50 800 50 0 0 0 7 7");
        assert_eq!(bed.values(&mut cpu, now, &names), [None, Some(2), Some(1250)]);
        write("110 0 60 860 70 0 0 0 7 7");
        assert_eq!(bed.values(&mut cpu, now, &names)[0], Some(200));
        // No tick since: the last value is kept and becomes stale.
        assert_eq!(bed.values(&mut cpu, now, &names)[0], Some(200));
    }
}
