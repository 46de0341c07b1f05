//! Test of `make audit` with a local advisory database.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the audit with the advisories in a directory.
fn audit(advisories: &Path) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/audit.sh");
    Command::new(script).env("KAIDO_ADVISORY_DB", advisories).output().unwrap()
}

fn git(directory: &Path, arguments: &[&str]) {
    let author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let mut git = Command::new("git");
    assert!(git.current_dir(directory).args(author).args(arguments).status().unwrap().success());
}

/// Writes an advisory for every version of a crate. IDs are unique, or the last one counts alone.
fn advise(directory: &Path, id: &str, name: &str) {
    let crates = directory.join("crates").join(name);
    std::fs::create_dir_all(&crates).unwrap();
    let text = format!(
        "```toml\n[advisory]\nid = \"{id}\"\npackage = \"{name}\"\ndate = \"2026-01-01\"\n\n\
         [versions]\npatched = []\n```\n\n# A hole\n\nFor this test.\n"
    );
    std::fs::write(crates.join(format!("{id}.md")), text).unwrap();
    git(directory, &["add", "."]);
    git(directory, &["commit", "--quiet", "-m", name]);
}

#[test]
fn an_advisory_for_a_crate_that_is_used_fails_the_audit() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "--quiet", "--initial-branch", "main"]);
    advise(directory.path(), "RUSTSEC-2026-0001", "a-crate-that-is-not-used");
    let clean = audit(directory.path());
    assert!(clean.status.success(), "{clean:?}");
    advise(directory.path(), "RUSTSEC-2026-0002", "libc");
    let found = audit(directory.path());
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(!found.status.success() && said.contains("RUSTSEC-2026-0002"), "{found:?}");
}
