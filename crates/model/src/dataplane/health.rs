//! Health checks of service functions: a command, and its schedule.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::topology::{DurationText, duration_text};

/// Health check of a service function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// The program and its arguments, executed without a shell.
    pub run: Vec<String>,
    /// Interval between the starts of two runs.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub every: Duration,
    /// Maximum duration of a run.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub timeout: Duration,
    /// Number of consecutive failures after which the function counts as down.
    pub fall: u32,
    /// Number of consecutive successes after which it counts as up again.
    pub rise: u32,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, every, timeout, fall, rise } = self;
        let run = run.join(" ");
        write!(f, "`{run}` every {every:?}, timeout {timeout:?}, fall {fall}, rise {rise}")
    }
}
