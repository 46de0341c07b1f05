//! `kaido p4 test`: runs a program's code on the packets of a test.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use output::p4::{P4TestFailure, P4TestOutcome};
use p4::interpret::{MAX_STEPS, Machine};
use p4::stf::{Command, Failure, Line};
use p4::{Checked, stf};
use p4_ebpf::Compiled;
use sandbox::{Limits, Program, Tested};

use crate::cli::P4Program;
use crate::commands::program;
use crate::failure::{self, Done};
use crate::output::{Output, counted};

/// Maximum size of a test file, in bytes.
const LARGEST_TEST: u64 = 64 << 20;

/// A test file and the result of its run.
struct TestRun {
    file: PathBuf,
    lines: usize,
    failures: Vec<Failure>,
    /// Lines with packets that the program processes endlessly.
    endless: Vec<usize>,
}

pub(super) fn run(program: &P4Program, tests: &[PathBuf], output: &Output) -> Done {
    let (checked, compiled) = program::compiled(program, output)?;
    let (tests, has_libraries) = (tests.to_vec(), !program.externs.is_empty());
    let runs = program::bounded(&program.file, move || {
        let loaded = Program::load(&compiled.object, &Limits::default());
        let loaded = loaded.map_err(failure::Failure::usage)?;
        let run = |file| run_test(file, &checked, &compiled, &loaded, has_libraries);
        tests.into_iter().map(run).collect::<Result<Vec<_>, _>>()
    })??;
    let passed = runs.iter().all(|run| run.failures.is_empty());
    let outcomes: Vec<_> = runs.iter().map(outcome).collect();
    output.print(&outcomes, |_| runs.iter().map(report).collect::<String>())?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a test on the compiled code and on the interpreter, which is the reference. Both start
/// without state.
fn run_test(
    file: PathBuf,
    checked: &Checked,
    compiled: &Compiled,
    loaded: &Program,
    has_libraries: bool,
) -> Result<TestRun, failure::Failure> {
    let text = crate::input::read(&file, "test", LARGEST_TEST)?;
    let lines = stf::parse(&text)
        .map_err(|why| failure::Failure::usage(anyhow!("{}: {why}", file.display())))?;
    let elaborated = p4::interpret::elaborate(&checked.program).map_err(failure::Failure::usage)?;
    let mut executor =
        Tested::new(compiled, elaborated, loaded).map_err(failure::Failure::failed)?;
    let mut failures = stf::run(&checked.program, &mut executor, &lines);
    let mut endless_lines = Vec::new();
    // The interpreter does not have the functions of libraries.
    if !has_libraries {
        let mut interpreter = Machine::new(&checked.program).map_err(failure::Failure::usage)?;
        let reference = stf::run(&checked.program, &mut interpreter, &lines);
        endless_lines = endless(&interpreter, &lines);
        failures.extend(difference(&failures, &reference, &endless_lines));
    }
    failures.extend(stf::unread(&lines, &compiled.object.keys));
    failures.sort_by_key(|failure| failure.line);
    Ok(TestRun { file, lines: lines.len(), failures, endless: endless_lines })
}

/// Returns the lines with packets that the interpreter processed endlessly.
fn endless(machine: &Machine<'_>, lines: &[Line]) -> Vec<usize> {
    let packets = lines.iter().filter(|line| matches!(line.command, Command::Packet(..)));
    let packets: Vec<usize> = packets.map(|line| line.number).collect();
    let line = |number: &u64| packets.get(usize::try_from(*number).ok()?.checked_sub(1)?).copied();
    machine.endless.iter().filter_map(line).collect()
}

/// Returns the difference between the compiled code and the interpreter, if there is one. After a
/// packet that the program processes endlessly, their states may differ, so later lines are not
/// compared.
fn difference(code: &[Failure], reference: &[Failure], endless: &[usize]) -> Option<Failure> {
    let is_before =
        |line: Option<usize>| endless.iter().all(|first| line.is_some_and(|line| line < *first));
    let before = |all: &[Failure]| -> Vec<Failure> {
        all.iter().filter(|failure| is_before(failure.line)).cloned().collect()
    };
    let most = Limits::default().instructions;
    let why = if before(code) != before(reference) {
        format!(
            "compiled code and interpreter differ; please report, unless a packet takes more than \
             {most} instructions"
        )
    } else if code != reference {
        "compiled code and interpreter differ after a packet that exceeds a limit".to_owned()
    } else {
        return None;
    };
    Some(Failure { line: None, why })
}

/// Formats the result of a test.
fn report(TestRun { file, lines, failures, endless }: &TestRun) -> String {
    let name = file.display();
    let most = Limits::default().instructions;
    let mut text = String::new();
    for line in endless {
        text.push_str(&format!(
            "{name}:{line}: packet dropped: instruction limit exceeded (interpreter: {MAX_STEPS} \
             steps, compiled code: {most} instructions)\n"
        ));
    }
    for failure in failures {
        let why = failure.why.replace('\n', "\n  ");
        match failure.line {
            None => text.push_str(&format!("{name}: {why}\n")),
            Some(line) => text.push_str(&format!("{name}:{line}: {why}\n")),
        }
    }
    match failures.len() {
        0 => text.push_str(&format!("{name}: {lines} lines passed\n")),
        count => text.push_str(&format!("{name}: {}\n", counted(count, "failure"))),
    }
    text
}

fn outcome(run: &TestRun) -> P4TestOutcome {
    let failure =
        |one: &Failure| P4TestFailure { line: one.line.unwrap_or(0), why: one.why.clone() };
    P4TestOutcome {
        test: run.file.display().to_string(),
        lines: run.lines,
        endless: run.endless.clone(),
        failures: run.failures.iter().map(failure).collect(),
    }
}
