//! Runs a topology file's `tests:` in a lab that is up.
#![forbid(unsafe_code)]

mod error;
mod ping;
mod route;
mod throughput;
mod window;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Cancel, Lab};
use model::topology::Test;
use serde::Serialize;

pub use error::Error;

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Description of the test.
    pub test: String,
    /// True if its condition held before the deadline.
    pub passed: bool,
    /// Expected result.
    pub expected: String,
    /// Last observed result.
    pub measured: String,
    /// Time until the condition held, in seconds: if the test was started right after a change, the
    /// convergence time.
    pub held_after: Option<f64>,
    /// Duration of the test, in seconds.
    pub seconds: f64,
}

/// Intermediate result of a test.
struct Observation {
    /// Time since which the condition holds, if it does.
    holds_since: Option<Instant>,
    measured: String,
}

/// Checks that the programs which the tests need are installed.
pub fn check_tools<'t>(tests: impl IntoIterator<Item = &'t Test>) -> Result<(), Error> {
    for test in tests {
        let (program, package, argument) = match test {
            Test::Ping(_) => ("ping", "iputils-ping", "-V"),
            Test::Throughput { .. } => ("iperf3", "iperf3", "--version"),
            Test::Route { .. } => continue,
        };
        let mut command = Command::new(program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map_err(|source| Error::NoTool { program, package, source })?;
    }
    Ok(())
}

/// Runs a test until its condition holds or its deadline has passed.
pub fn run(lab: &Lab, test: &Test, cancel: &Cancel) -> Result<Outcome, Error> {
    let started = Instant::now();
    let (description, expected, within, observed) = match test {
        Test::Ping(ping) => {
            let deadline = started + ping.within.0;
            let observed = ping::run(lab, ping, deadline, cancel)?;
            (ping::description(ping), ping::expected(ping), ping.within, observed)
        }
        Test::Throughput { from, to, family, throughput, within } => {
            let observed =
                throughput::run(lab, [from, to], *family, throughput, started + within.0, cancel)?;
            (format!("{from} sends to {to}"), throughput.to_string(), *within, observed)
        }
        Test::Route { on, route, present, via, within } => {
            let wanted = route::Wanted { on, route: *route, present: *present, via };
            let observed = route::run(lab, &wanted, started + within.0, cancel)?;
            (format!("{on} to {route}"), wanted.expected(), *within, observed)
        }
    };
    Ok(Outcome {
        test: description,
        passed: observed.holds_since.is_some(),
        expected: format!("{expected} within {within}"),
        measured: observed.measured,
        held_after: observed
            .holds_since
            .map(|since| since.saturating_duration_since(started).as_secs_f64()),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Starts a program on a node; it is killed on drop.
fn start(lab: &Lab, node: &str, mut command: Command) -> Result<Running, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let started = lab.namespace(node)?.run(|| command.spawn())?;
    Ok(Running(started.map_err(|source| Error::Command { command: program, source })?))
}

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A time in milliseconds, for display.
fn milliseconds(time: Duration) -> String {
    format!("{:.2}ms", time.as_secs_f64() * 1e3)
}
