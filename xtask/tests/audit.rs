//! `make audit`, with advisories of the test's own.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::path::Path;
use std::process::{Command, Output};

/// The audit with the advisories of a folder.
fn audit(advisories: &Path) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/audit.sh");
    Command::new(script).env("KAIDO_ADVISORY_DB", advisories).output().unwrap()
}

fn git(folder: &Path, arguments: &[&str]) {
    let author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let mut git = Command::new("git");
    assert!(git.current_dir(folder).args(author).args(arguments).status().unwrap().success());
}

/// Writes an advisory for every version of a crate. IDs are unique, or the last one counts alone.
fn advise(folder: &Path, id: &str, name: &str) {
    let crates = folder.join("crates").join(name);
    std::fs::create_dir_all(&crates).unwrap();
    let text = format!(
        "```toml\n[advisory]\nid = \"{id}\"\npackage = \"{name}\"\ndate = \"2026-01-01\"\n\n\
         [versions]\npatched = []\n```\n\n# A hole\n\nFor this test.\n"
    );
    std::fs::write(crates.join(format!("{id}.md")), text).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", name]);
}

#[test]
fn an_advisory_for_a_crate_that_is_used_fails_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch", "main"]);
    advise(folder.path(), "RUSTSEC-2026-0001", "a-crate-that-is-not-used");
    let clean = audit(folder.path());
    assert!(clean.status.success(), "{clean:?}");
    advise(folder.path(), "RUSTSEC-2026-0002", "libc");
    let found = audit(folder.path());
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(!found.status.success() && said.contains("RUSTSEC-2026-0002"), "{found:?}");
}
