//! `kaido p4 test`: a program's code, on packets of a test.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use p4::interpret::Machine;
use sandbox::{Limits, Program, Tested};
use serde_json::{Value, json};

use crate::cli::P4Program;
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

/// The largest file of tests.
const LARGEST_TEST: u64 = 64 << 20;

pub(super) fn run(program: &P4Program, tests: &[PathBuf], output: &Output) -> Done {
    let (checked, compiled) = super::compiled(program, output)?;
    let loaded = Program::load(&compiled.object, &Limits::default()).map_err(Failure::usage)?;
    let mut all = Vec::new();
    for file in tests {
        let text = crate::input::read(file, "test", LARGEST_TEST)?;
        let lines = p4::stf::parse(&text)
            .map_err(|why| Failure::usage(anyhow!("{}: {why}", file.display())))?;
        // Each test has a program that has seen nothing yet.
        let made = p4::ebpf::made(&checked.program).map_err(Failure::usage)?;
        let mut tested = Tested::new(&compiled, made, &loaded).map_err(Failure::failed)?;
        let mut failures = p4::stf::run(&checked.program, &mut tested, &lines);
        let mut machine = Machine::new(&checked.program).map_err(Failure::usage)?;
        if p4::stf::run(&checked.program, &mut machine, &lines) != failures {
            let why = "its code does not do what the program means: this is a fault of kaido's";
            failures.push(p4::stf::Failure { line: 0, why: why.to_owned() });
        }
        all.push((file, lines.len(), failures));
    }
    let passed = all.iter().all(|(_, _, failures)| failures.is_empty());
    let said: Vec<Value> = all
        .iter()
        .map(|(file, lines, failures)| {
            let failures = failures.iter();
            json!({
                "test": file,
                "lines": lines,
                "failures": failures.map(|one| json!({ "line": one.line, "why": one.why })).collect::<Vec<_>>(),
            })
        })
        .collect();
    output.print(&said, |_| {
        let mut text = String::new();
        for (file, lines, failures) in &all {
            let name = file.display();
            for failure in failures {
                let why = failure.why.replace('\n', "\n  ");
                match failure.line {
                    0 => text.push_str(&format!("{name}: {why}\n")),
                    line => text.push_str(&format!("{name}:{line}: {why}\n")),
                }
            }
            match failures.len() {
                0 => text.push_str(&format!("{name}: {lines} lines hold\n")),
                count => text.push_str(&format!("{name}: {}\n", counted(count, "failure"))),
            }
        }
        text
    })?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
