//! Memory size and utilization.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use vminfo::Unit;

use super::{Board, Source, first_number, per_mille};

pub(super) struct Memory {
    proc: PathBuf,
}

impl Memory {
    pub(super) fn new(proc: &Path) -> Self {
        Self { proc: proc.to_owned() }
    }
}

impl Source for Memory {
    fn count(&mut self, _: Instant, to: &mut Board<'_>) {
        let Ok(text) = fs::read_to_string(self.proc.join("meminfo")) else { return };
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(first_number).map(|kib| kib * 1024)
        };
        let (Some(all), Some(left)) = (bytes("MemTotal"), bytes("MemAvailable")) else { return };
        to.set("memory.total", Unit::Bytes, all);
        to.set("memory.available", Unit::Bytes, left);
        let used = per_mille(all.saturating_sub(left) as f64, all as f64);
        to.set("memory.utilisation", Unit::PerMille, used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::Bed;

    #[test]
    fn utilisation_is_the_memory_that_is_not_available() {
        let mut bed = Bed::new();
        let proc = bed.directory().to_owned();
        let text = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     750 kB\n";
        fs::write(proc.join("meminfo"), text).unwrap();
        let names = ["memory.total", "memory.available", "memory.utilisation"];
        let found = bed.values(&mut Memory::new(&proc), Instant::now(), &names);
        assert_eq!(found, [Some(1_024_000), Some(768_000), Some(250)]);
    }
}
