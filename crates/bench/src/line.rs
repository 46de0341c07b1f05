//! The comparison of the demo with the published results.

use serde::Serialize;

use crate::scenario::{Load, Measured, Run};

/// A line of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Measured quantity and load.
    pub what: String,
    /// The published result.
    pub published: String,
    /// The result here without Kaido.
    pub without: String,
    /// The result here with Kaido.
    pub with: String,
}

/// Returns the runs of one kind without and with Kaido.
pub(crate) fn pair(runs: &[Run], load: Load, measured: Measured) -> Option<(&Run, &Run)> {
    let find = |managed: bool| {
        runs.iter().find(|r| r.load == load && r.measured == measured && r.managed == managed)
    };
    Some((find(false)?, find(true)?))
}
