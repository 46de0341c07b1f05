//! The file of results that continuous integration reads.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use lab::Outcome;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Where the results go. What is there stays until there are new ones, whole.
pub(super) struct Junit {
    path: PathBuf,
    target: Target,
}

enum Target {
    /// A pipe or a device is written to as it is.
    Open(File),
    /// A file is made beside it, and takes its place.
    Replaced { path: PathBuf, permissions: fs::Permissions },
}

impl Junit {
    /// Refuses what cannot be written, and changes nothing.
    pub(super) fn to(path: &Path) -> Result<Self, Failure> {
        let target = Target::of(path).with_context(|| cannot(path)).map_err(Failure::failed)?;
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

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        // The file that a link leads to is replaced, and not the link.
        let (path, permissions) = match fs::canonicalize(path) {
            Ok(path) => {
                let file = File::options().append(true).open(&path)?;
                let found = file.metadata()?;
                if !found.is_file() {
                    return Ok(Self::Open(file));
                }
                (path, found.permissions())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (path.to_owned(), fs::Permissions::from_mode(0o666))
            }
            Err(error) => return Err(error),
        };
        // Whether there can be one beside it; it goes again at once.
        beside(&path, &permissions)?;
        Ok(Self::Replaced { path, permissions })
    }

    fn write(self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Open(mut file) => file.write_all(text),
            Self::Replaced { path, permissions } => {
                let mut file = beside(&path, &permissions)?;
                file.write_all(text)?;
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

/// A new file in the folder of another one. Permissions are as umask leaves them.
fn beside(path: &Path, permissions: &fs::Permissions) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kaido-").permissions(permissions.clone());
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
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

/// A name that no other test has: readers take two of one name for the same one.
fn name(outcome: &Outcome, names: &mut HashMap<String, usize>) -> String {
    let name = format!("{}: {}", outcome.test, outcome.expected);
    let count = names.entry(name.clone()).or_default();
    *count += 1;
    if *count == 1 { name } else { format!("{name} ({count})") }
}
