//! docs/security.md names tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all tests below a directory: functions with the attribute `#[test]` or
/// `#[tokio::test]`.
fn tests(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim_start) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) else { continue };
                found.insert(rest.split('(').next().unwrap().to_owned());
                is_test = false;
            }
        }
    }
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut known = BTreeSet::new();
    for directory in ["crates", "xtask"] {
        tests(&root.join(directory), &mut known);
    }
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let paths = page.split('`').skip(1).step_by(2).filter(|code| code.contains("::"));
    let names = paths.filter_map(|path| path.rsplit("::").next());
    // The rest are addresses and types.
    let named: Vec<&str> = names.filter(|name| name.starts_with(char::is_lowercase)).collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        assert!(known.contains(name), "no test {name}");
    }
}
