//! `kaido demo` and `kaido bench`.

use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of the demo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DemoOutcome {
    /// The comparison with the published figures.
    pub lines: Vec<DemoLine>,
    /// Differences from the published setup, with reasons.
    pub differences: Vec<String>,
    /// File name of the report.
    pub report: String,
    /// True if all required properties hold.
    pub holds: bool,
}

/// A line of the demo's comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DemoLine {
    /// Measured quantity and load.
    pub what: String,
    /// The published result.
    pub published: String,
    /// The result here without Kaido.
    pub without: String,
    /// The result here with Kaido.
    pub with: String,
}

/// A result of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BenchRow {
    /// Measured quantity and variant: `what/variant`.
    pub name: String,
    /// Median.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// Baseline in the same unit, if there is one.
    pub baseline: Option<f64>,
    /// Ratio to the baseline; more is better.
    pub ratio: Option<f64>,
    /// Lowest value of all runs.
    pub low: f64,
    /// Highest value of all runs.
    pub high: f64,
}
