//! The checks of the workspace: its layers and its prose are right, and generated files are up to date.
#![allow(clippy::unwrap_used, reason = "a test may panic, and so may what it calls")]

use std::process::Command;

/// Runs `cargo xtask` with these arguments.
fn check(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
    let [text, errors] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    print!("{text}");
    assert!(output.status.success(), "cargo xtask {}\n{errors}", arguments.join(" "));
}

#[test]
fn crates_depend_on_lower_floors_only() {
    check(&["layers"]);
}

#[test]
fn comments_messages_and_pages_are_plain_english() {
    check(&["prose"]);
}

#[test]
fn schemas_are_up_to_date() {
    check(&["schema", "--check"]);
}

#[test]
fn the_table_of_behaviors_is_up_to_date() {
    check(&["behaviors", "--check"]);
}

#[test]
fn the_page_of_the_language_is_up_to_date() {
    check(&["language", "--check"]);
}

#[test]
fn the_tables_of_benchmarks_are_up_to_date() {
    check(&["benchmarks", "--check"]);
}
