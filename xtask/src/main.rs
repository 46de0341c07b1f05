//! Checks of the workspace: `cargo xtask layers`, `cargo xtask schema [--check]`,
//! `cargo xtask behaviors [--check]`, `cargo xtask language [--check]`,
//! `cargo xtask benchmarks [--check]`.
#![forbid(unsafe_code)]

mod behaviors;
mod benchmarks;
mod language;
mod layers;
mod options;
mod outputs;
mod prose;
mod schema;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  layers           check that crates depend on lower floors only
  prose            check comments, messages and pages for plain English
  schema           write docs/*.schema.json, and check every file in labs/ against them
  schema --check   the same, but fail instead of writing when the file is out of date
  behaviors        write the table of endpoint behaviors in docs/dataplane.md
  behaviors --check
                   the same, but fail instead of writing when the table is out of date
  language         write docs/p4-language.md, from the programs in crates/p4/tests
  language --check the same, but fail instead of writing when the file is out of date
  benchmarks       write the tables of docs/benchmarks.md, from bench/results and bench/targets.yaml
  benchmarks --check
                   the same, but fail instead of writing when a table is out of date";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let result = match arguments[..] {
        ["layers"] => layers::run(root),
        ["schema"] => schema::run(root, false),
        ["schema", "--check"] => schema::run(root, true),
        ["behaviors"] => behaviors::run(root, false),
        ["behaviors", "--check"] => behaviors::run(root, true),
        ["language"] => language::run(root, false),
        ["language", "--check"] => language::run(root, true),
        ["benchmarks"] => benchmarks::run(root, false),
        ["benchmarks", "--check"] => benchmarks::run(root, true),
        ["prose"] => prose::run(root),
        ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
