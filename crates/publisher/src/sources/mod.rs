//! Sources of values.

mod cpu;
mod memory;
mod network;
mod own;
mod processes;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use vminfo::{Key, Unit, WriteError, Writer};

use crate::options::{Group, Options};

/// Mount point of procfs.
pub(crate) const PROC: &str = "/proc";
pub(crate) const SYS_NET: &str = "/sys/class/net";

/// A source of values, sampled with each heartbeat.
pub(crate) trait Source {
    /// Samples the source and sets its values. A value that is not available is not set, and
    /// becomes stale.
    fn count(&mut self, now: Instant, to: &mut Board<'_>);
}

/// Returns all sources that the options request.
pub(crate) fn all(options: &Options) -> Vec<Box<dyn Source>> {
    let proc = Path::new(PROC);
    // Keys requested by name come first, so that a machine with many interfaces does not exhaust
    // the limit.
    let mut all = own::all(options);
    for name in &options.process {
        all.push(Box::new(processes::Process::new(proc, name)));
    }
    for group in [Group::Cpu, Group::Memory, Group::Processes, Group::Network] {
        if !options.only.contains(&group) {
            continue;
        }
        all.push(match group {
            Group::Network => {
                Box::new(network::Network::new(proc, Path::new(SYS_NET), options.speed))
            }
            Group::Cpu => Box::new(cpu::Cpu::new(proc)),
            Group::Memory => Box::new(memory::Memory::new(proc)),
            Group::Processes => Box::new(processes::Processes::new(proc)),
        });
    }
    all
}

/// Maximum number of names that are remembered, with those that are not published.
const MAX_NAMES: usize = 4 * vminfo::layout::MAX_KEYS;

/// Destination of values. Keys are created when they are first set.
pub(crate) struct Board<'w> {
    pub(crate) writer: &'w mut Writer,
    pub(crate) places: &'w mut HashMap<String, Option<usize>>,
    pub(crate) valid: Duration,
}

impl Board<'_> {
    /// Sets a value. An invalid name, or a key above the limit, is reported once and then ignored.
    pub(crate) fn set(&mut self, name: &str, unit: Unit, value: u64) {
        if let Some(place) = self.places.get(name) {
            if let Some(place) = place {
                self.writer.set_value(*place, value);
            }
            return;
        }
        // A source may have any number of names.
        if self.places.len() == MAX_NAMES {
            return;
        }
        let added = Key::new(name, unit, self.valid)
            .map_err(|why| why.to_string())
            .and_then(|key| self.writer.add(key).map_err(|why: WriteError| why.to_string()));
        let place = match added {
            Ok(place) => {
                self.writer.set_value(place, value);
                Some(place)
            }
            Err(why) => {
                eprintln!("publish: {why}");
                None
            }
        };
        self.places.insert(name.to_owned(), place);
    }
}

/// Converts a share to per mille, at most 1000.
fn per_mille(part: f64, whole: f64) -> u64 {
    if whole > 0.0 { (part / whole * 1000.0).round().clamp(0.0, 1000.0) as u64 } else { 0 }
}

/// Returns the first number in a text.
fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use vminfo::{Publication, Reader};

    use super::*;

    /// A writer in a temporary directory, with access to its publication.
    pub(crate) struct Bed {
        directory: tempfile::TempDir,
        writer: Writer,
        places: HashMap<String, Option<usize>>,
    }

    impl Bed {
        pub(crate) fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let writer = Writer::create(&directory.path().join("vm")).unwrap();
            Self { directory, writer, places: HashMap::new() }
        }

        pub(crate) fn directory(&self) -> &Path {
            self.directory.path()
        }

        /// Number of names that are remembered.
        pub(crate) fn names(&self) -> usize {
            self.places.len()
        }

        pub(crate) fn count(&mut self, source: &mut dyn Source, now: Instant) -> Publication {
            let valid = Duration::from_millis(300);
            let mut to = Board { writer: &mut self.writer, places: &mut self.places, valid };
            source.count(now, &mut to);
            self.writer.beat().unwrap();
            Reader::new(&self.directory.path().join("vm")).read().unwrap()
        }

        /// Samples the source, and returns the published values of these names.
        pub(crate) fn values(
            &mut self,
            source: &mut dyn Source,
            now: Instant,
            names: &[&str],
        ) -> Vec<Option<u64>> {
            let said = self.count(source, now);
            let value = |name: &&str| said.entries.iter().find(|one| one.name == **name)?.value;
            names.iter().map(value).collect()
        }
    }

    #[test]
    fn shares_are_of_a_whole() {
        assert_eq!(
            [(1.0, 3.0), (3.0, 1.0), (0.0, 0.0), (-1.0, 1.0)].map(|(a, b)| per_mille(a, b)),
            [333, 1000, 0, 0]
        );
        assert_eq!([" 12 x", "x", "", "-1"].map(first_number), [Some(12), None, None, None]);
    }

    #[test]
    fn a_value_with_an_invalid_name_is_left_out() {
        let mut bed = Bed::new();
        struct Odd;
        impl Source for Odd {
            fn count(&mut self, _: Instant, to: &mut Board<'_>) {
                to.set("two words", Unit::Number, 1);
                to.set("right", Unit::Number, 2);
            }
        }
        for _ in 0..2 {
            let said = bed.count(&mut Odd, Instant::now());
            let names: Vec<_> = said.entries.iter().map(|one| (&*one.name, one.value)).collect();
            assert_eq!(names, [("right", Some(2))]);
        }
    }
}
