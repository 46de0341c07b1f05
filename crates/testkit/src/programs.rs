//! P4 programs with tests, in `crates/p4/tests/programs`.

use std::path::Path;

/// Number of programs, so that a missing one is noticed.
const PROGRAMS: usize = 117;

/// Returns the name, the text and the test of each program.
///
/// # Panics
///
/// If a file cannot be read, or programs are missing.
pub fn programs() -> Vec<(String, String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/tests/programs");
    let mut all = Vec::new();
    for file in std::fs::read_dir(&directory).expect("there are programs") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "stf") {
            continue;
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        };
        let name = path.file_stem().expect("it has an extension").to_string_lossy().into_owned();
        all.push((name, read(&path.with_extension("p4")), read(&path)));
    }
    all.sort();
    assert!(all.len() >= PROGRAMS, "there are {} programs with tests", all.len());
    all
}
