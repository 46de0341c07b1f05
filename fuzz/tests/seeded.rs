//! Runs the fuzz targets without the fuzzer, on randomly mutated seeds. `KAIDO_SEED` reproduces a
//! run, `KAIDO_CASES` sets the number of cases.

use std::path::Path;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Applies one to eight mutations: flips bits, replaces bytes, and removes, repeats or splices
/// pieces.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(input.len());
        let length = random.below(32);
        let end = (at + length).min(input.len());
        match random.below(6) {
            0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            1 if !input.is_empty() => input[at] = random.bits() as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            4 => {
                let from = random.below(other.len());
                let piece = &other[from..(from + length).min(other.len())];
                input.splice(at..at, piece.iter().copied());
            }
            _ => input.truncate(at.max(1)),
        }
    }
}

fn check(what: fn(&[u8]), seeds: &[Vec<u8>], cases: u64) {
    assert!(!seeds.is_empty());
    let now = std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let seed = number("KAIDO_SEED").unwrap_or(now);
    eprintln!("KAIDO_SEED={seed}");
    let mut random = Random(seed);
    seeds.iter().for_each(|seed| what(seed));
    for _ in 0..number("KAIDO_CASES").unwrap_or(cases) {
        let mut input = seeds[random.below(seeds.len())].clone();
        let other = &seeds[random.below(seeds.len())];
        change(&mut input, other, &mut random);
        what(&input);
    }
}

/// Contents of the files in a directory tree.
fn files(directory: &Path) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the directory is part of the sources") {
        let path = entry.expect("its entries as well").path();
        if path.is_dir() {
            out.extend(files(&path));
        } else {
            out.push(std::fs::read(&path).expect("a file"));
        }
    }
    out
}

fn seeds(directory: &str) -> Vec<Vec<u8>> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory))
}

#[test]
fn headers() {
    check(kaido_fuzz::headers, &seeds("seeds/headers"), 1_000_000);
}

#[test]
fn dataplane_files() {
    check(kaido_fuzz::dataplane_file, &seeds("../labs/dataplane"), 20_000);
}

#[test]
fn topology_files() {
    check(kaido_fuzz::topology_file, &seeds("../labs"), 20_000);
}

#[test]
fn networks() {
    check(kaido_fuzz::network, &seeds("seeds/network"), 50_000);
}

#[test]
fn imports() {
    check(kaido_fuzz::imports, &seeds("../crates/import/tests/files"), 20_000);
}

#[test]
fn p4_programs() {
    check(kaido_fuzz::p4_program, &seeds("../crates/p4/tests/programs"), 10_000);
}

#[test]
fn vm_infos() {
    check(kaido_fuzz::vm_info, &seeds("seeds/vm_info"), 1_000_000);
}

#[test]
fn p4_objects() {
    check(kaido_fuzz::p4_object, &seeds("../crates/p4-object/tests/objects"), 100_000);
}
