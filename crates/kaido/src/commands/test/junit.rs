//! The result file for continuous integration.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use verify::Outcome;

use crate::failure::Failure;
use crate::target::Target;

/// The output file. An existing file is kept until the new results replace it as a whole.
pub(super) struct Junit {
    path: PathBuf,
    target: Target,
}

impl Junit {
    /// Fails if the file cannot be written, without changing anything.
    pub(super) fn to(path: &Path) -> Result<Self, Failure> {
        let target =
            Target::resolve(path).with_context(|| cannot(path)).map_err(Failure::failed)?;
        Ok(Self { path: path.into(), target })
    }

    pub(super) fn write(self, lab: &str, outcomes: &[Outcome]) -> Result<(), Failure> {
        let written = report(lab, outcomes)
            .to_string()
            .map_err(io::Error::other)
            .and_then(|text| self.target.write(text.as_bytes()));
        written.with_context(|| cannot(&self.path)).map_err(Failure::failed)
    }
}

fn cannot(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

fn report(lab: &str, outcomes: &[Outcome]) -> Report {
    let mut suite = TestSuite::new(lab);
    let mut names = HashMap::new();
    for outcome in outcomes {
        let mut status = TestCaseStatus::success();
        if !outcome.passed {
            status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let message = format!("expected {}, measured {}", outcome.expected, outcome.measured);
            status.set_message(message);
        }
        let mut case = TestCase::new(name(outcome, &mut names), status);
        case.set_classname(lab).set_time(Duration::from_secs_f64(outcome.seconds));
        case.set_system_out(&outcome.measured);
        suite.add_test_case(case);
    }
    suite.set_time(Duration::from_secs_f64(outcomes.iter().map(|o| o.seconds).sum()));
    let mut report = Report::new("kaido lab test");
    report.add_test_suite(suite);
    report
}

/// Returns a unique name: readers merge tests with the same name.
fn name(outcome: &Outcome, names: &mut HashMap<String, usize>) -> String {
    let name = format!("{}: {}", outcome.test, outcome.expected);
    let count = names.entry(name.clone()).or_default();
    *count += 1;
    if *count == 1 { name } else { format!("{name} ({count})") }
}
