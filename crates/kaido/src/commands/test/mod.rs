//! `kaido lab test`.

mod junit;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use lab::{Cancel, Lab, Labs, Options};
use model::topology::{Test, Topology};
use output::test::{TestOutcome, TestReport};
use verify::Outcome;

use self::junit::Junit;
use super::progress::{program, progress_bar, shows};
use super::topology_file::{TopologyFile, read_all};
use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::cancellable;

/// Runs the tests of a lab that is up, or of a file; brings up the lab of the file if necessary.
pub(crate) fn run(
    labs: &Labs,
    what: Option<&str>,
    junit: Option<&Path>,
    limit: Duration,
    output: &Output,
) -> Done {
    let cancel = Cancel::default();
    // Report an unwritable file before anything else is done.
    let junit = junit.map(Junit::to).transpose()?;
    let (name, outcomes) = match what {
        Some(file) if Path::new(file).is_file() => {
            of_file(labs, Path::new(file), limit, &cancel, output)?
        }
        // A lab's name has neither.
        Some(file) if file.contains(['/', '.']) => {
            return Err(Failure::usage(anyhow!("cannot read {file}: no such file")));
        }
        what => {
            let lab = labs.choose(what)?;
            let tests = lab.topology().tests.clone();
            let outcomes = cancellable(&cancel, || all(&lab, &tests, &cancel, output))??;
            (lab.name().to_owned(), outcomes)
        }
    };
    let written = junit.map(|junit| junit.write(&name, &outcomes));
    let passed = outcomes.iter().filter(|outcome| outcome.passed).count();
    let failed = outcomes.len() - passed;
    let tests = outcomes.iter().map(outcome).collect();
    let report = TestReport { lab: name, passed, failed, tests };
    output.print(&report, |_| text(&outcomes, passed))?;
    written.transpose()?;
    Ok(if passed == outcomes.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn outcome(outcome: &Outcome) -> TestOutcome {
    TestOutcome {
        test: outcome.test.clone(),
        passed: outcome.passed,
        expected: outcome.expected.clone(),
        measured: outcome.measured.clone(),
        after: outcome.held_after,
        seconds: outcome.seconds,
    }
}

fn of_file(
    labs: &Labs,
    file: &Path,
    limit: Duration,
    cancel: &Cancel,
    output: &Output,
) -> Result<(String, Vec<Outcome>), Failure> {
    let TopologyFile { text, topology, recordings, path } = read_all(file, output)?;
    let (name, tests) = (topology.name.clone(), topology.tests.clone());
    if labs.names()?.contains(&name) {
        let lab = labs.open(&name)?;
        let bare = |topology: &Topology| Topology { tests: Vec::new(), ..topology.clone() };
        if bare(lab.topology()) != bare(&topology) {
            let help =
                format!("take it down with `kaido lab down {name}`, or name the lab instead");
            return Err(Failure::usage(anyhow!(
                "the lab {name} is up with another network than {}: {help}",
                file.display()
            )));
        }
        let outcomes = cancellable(cancel, || all(&lab, &tests, cancel, output))??;
        return Ok((name, outcomes));
    }
    check(&tests, &file.display().to_string())?;
    let files = recordings.into_texts();
    // `owned` lets `gc` remove the lab if this command is killed.
    let program = Some(program()?);
    let options = Options { program, limit, files, owned: true, ..Options::default() };
    let bar = progress_bar(output);
    let done = cancellable(cancel, || {
        let lab = labs.up(topology, &text, &path, &options, cancel, &mut shows(&bar))?;
        bar.finish_and_clear();
        let outcomes = all(&lab, &tests, cancel, output);
        let down = labs.down(&name);
        let outcomes = outcomes?;
        down?;
        Ok::<_, Failure>(outcomes)
    })?;
    Ok((name, done?))
}

/// Checks that there are tests, and that the tools for them are installed.
fn check(tests: &[Test], whose: &str) -> Result<(), Failure> {
    if tests.is_empty() {
        return Err(Failure::usage(anyhow!("{whose} has no `tests:`")));
    }
    Ok(verify::check_tools(tests)?)
}

/// Runs tests in their order.
fn all(
    lab: &Lab,
    tests: &[Test],
    cancel: &Cancel,
    output: &Output,
) -> Result<Vec<Outcome>, Failure> {
    check(tests, &format!("the lab {}", lab.name()))?;
    let bar = progress_bar(output);
    bar.set_length(tests.len() as u64);
    bar.set_message("tests");
    let mut outcomes = Vec::with_capacity(tests.len());
    for test in tests {
        outcomes.push(verify::run(lab, test, cancel)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

fn text(outcomes: &[Outcome], passed: usize) -> String {
    let row = |outcome: &Outcome| {
        let result = if outcome.passed { "PASS" } else { "FAIL" };
        let after = outcome.held_after.map_or("-".into(), |after| format!("{after:.2} s"));
        let words = [&outcome.test, &outcome.expected, &outcome.measured];
        let mut row = vec![result.to_owned()];
        row.extend(words.into_iter().cloned());
        row.push(after);
        row
    };
    let header = ["", "TEST", "EXPECTED", "MEASURED", "AFTER"];
    let failed = outcomes.len() - passed;
    format!("{}\n{passed} passed, {failed} failed", table(&header, outcomes.iter().map(row)))
}
