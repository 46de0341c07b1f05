//! `kaido p4 test`: runs a program's code on the packets of a test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use output::p4::{P4TestFailure, P4TestOutcome};
use p4::interpret::{MAX_STEPS, Machine};
use p4::stf::{Command, Failure as Failed, Line};
use sandbox::{Limits, Program, Tested};

use crate::cli::P4Program;
use crate::failure::{Done, Failure};
use crate::output::{Output, counted};

/// Maximum size of a test file, in bytes.
const LARGEST_TEST: u64 = 64 << 20;

/// A test and its result.
struct Tried<'t> {
    file: &'t Path,
    lines: usize,
    failures: Vec<Failed>,
    /// Lines with packets that the program processes endlessly.
    endless: Vec<usize>,
}

fn endless(machine: &Machine<'_>, lines: &[Line]) -> Vec<usize> {
    let packets = lines.iter().filter(|line| matches!(line.command, Command::Packet(..)));
    let packets: Vec<usize> = packets.map(|line| line.number).collect();
    let line = |number: &u64| packets.get(usize::try_from(*number).ok()?.checked_sub(1)?).copied();
    machine.endless.iter().filter_map(line).collect()
}

fn no_end() -> String {
    let most = Limits::default().instructions;
    format!(
        "the program comes to no end for this packet, which goes nowhere: the limits \
         are {MAX_STEPS} steps and {most} instructions of its code"
    )
}

/// Returns the difference between a program and its code, if there is one. After a packet that the
/// program processes endlessly, their states may differ, so later lines are not compared.
fn difference(code: &[Failed], program: &[Failed], endless: &[usize]) -> Option<Failed> {
    let is_before = |line: usize| endless.iter().all(|one| (1..*one).contains(&line));
    let before = |all: &[Failed]| -> Vec<Failed> {
        all.iter().filter(|one| is_before(one.line)).cloned().collect()
    };
    let most = Limits::default().instructions;
    let why = if before(code) != before(program) {
        format!(
            "its code does not do what the program means: unless it takes more than {most} \
             instructions for a packet, this is a fault of kaido's"
        )
    } else if code != program {
        "its code stops elsewhere than the program, which comes to no end".to_owned()
    } else {
        return None;
    };
    Some(Failed { line: 0, why })
}

pub(super) fn run(program: &P4Program, tests: &[PathBuf], output: &Output) -> Done {
    let (checked, compiled) = super::compiled(program, output)?;
    let loaded = Program::load(&compiled.object, &Limits::default()).map_err(Failure::usage)?;
    let mut all = Vec::new();
    for file in tests {
        let text = crate::input::read(file, "test", LARGEST_TEST)?;
        let lines = p4::stf::parse(&text)
            .map_err(|why| Failure::usage(anyhow!("{}: {why}", file.display())))?;
        // Each test starts with a program without state.
        let elaborated = p4::interpret::elaborate(&checked.program).map_err(Failure::usage)?;
        let mut tested = Tested::new(&compiled, elaborated, &loaded).map_err(Failure::failed)?;
        let mut failures = p4::stf::run(&checked.program, &mut tested, &lines);
        let mut machine = Machine::new(&checked.program).map_err(Failure::usage)?;
        let meant = p4::stf::run(&checked.program, &mut machine, &lines);
        let endless = endless(&machine, &lines);
        failures.extend(difference(&failures, &meant, &endless));
        failures.extend(p4::stf::unread(&lines, &compiled.object.keys));
        failures.sort_by_key(|one| one.line);
        all.push(Tried { file, lines: lines.len(), failures, endless });
    }
    let passed = all.iter().all(|one| one.failures.is_empty());
    let said: Vec<_> = all.iter().map(outcome).collect();
    output.print(&said, |_| {
        let mut text = String::new();
        for Tried { file, lines, failures, endless } in &all {
            let name = file.display();
            for line in endless {
                text.push_str(&format!("{name}:{line}: {}\n", no_end()));
            }
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

fn outcome(tried: &Tried<'_>) -> P4TestOutcome {
    let failure = |one: &Failed| P4TestFailure { line: one.line, why: one.why.clone() };
    P4TestOutcome {
        test: tried.file.display().to_string(),
        lines: tried.lines,
        endless: tried.endless.clone(),
        failures: tried.failures.iter().map(failure).collect(),
    }
}
