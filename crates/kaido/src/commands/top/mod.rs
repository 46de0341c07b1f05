//! `kaido lab top`: shows the measured behavior of links next to their settings.

mod programs;
mod reading;
mod row;
mod view;

use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use lab::{Cancel, Lab};

use crate::failure::{Done, Failure};
use crate::output::{Output, table};
use crate::runtime::cancellable;
use row::{HEADER, Row};

pub(super) fn run(lab: &Lab, interval: Duration, once: bool, output: &Output) -> Done {
    let cancel = Cancel::default();
    let is_terminal = stdin().is_terminal() && stdout().is_terminal();
    let done = if once || output.is_json() || !is_terminal {
        cancellable(&cancel, || print(lab, interval, &cancel, output))?
    } else {
        cancellable(&cancel, || view::run(lab, interval, &cancel))?
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Prints the behavior of the links in an interval.
fn print(lab: &Lab, interval: Duration, cancel: &Cancel, output: &Output) -> Result<(), Failure> {
    let before = programs::take(lab)?;
    cancel.wait(interval)?;
    let rows = Row::between(&before, &programs::take(lab)?);
    let json: Vec<_> = rows.iter().map(Row::output).collect();
    output.print(&json, |_| table(&HEADER, rows.iter().map(|row| row.cells().into())))
}
