//! `kaido lab test`.

use schemars::JsonSchema;
use serde::Serialize;

/// Results of a lab's tests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TestReport {
    /// Lab name.
    pub lab: String,
    /// Number of tests that passed.
    pub passed: usize,
    /// Number of tests that failed.
    pub failed: usize,
    /// The tests in the file's order.
    pub tests: Vec<TestOutcome>,
}

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TestOutcome {
    /// Description of the test.
    pub test: String,
    /// True if its condition held before the deadline.
    pub passed: bool,
    /// Expected result.
    pub expected: String,
    /// Last observed result.
    pub measured: String,
    /// Time until the condition held, in seconds; null if it did not.
    pub after: Option<f64>,
    /// Duration of the test, in seconds.
    pub seconds: f64,
}
