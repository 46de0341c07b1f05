//! Checks that the tests named in docs/security.md exist.

use std::collections::BTreeSet;
use std::path::Path;

/// Collects the names of all functions and modules of the workspace.
fn names(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
            self::names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.insert(path.file_stem().unwrap().to_string_lossy().into_owned());
            let text = std::fs::read_to_string(&path).unwrap();
            let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            names.extend(functions.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut known = BTreeSet::new();
    for folder in ["crates", "xtask"] {
        names(&root.join(folder), &mut known);
    }
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let paths = page.split('`').skip(1).step_by(2).filter(|code| code.contains("::"));
    let named: Vec<&str> = paths.filter_map(|path| path.rsplit("::").next()).collect();
    assert!(named.len() > 30, "{named:?}");
    for name in named {
        let name = name.trim_start_matches('…');
        assert!(known.iter().any(|one| one == name || one.ends_with(name)), "no test {name}");
    }
}
