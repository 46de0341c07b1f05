//! Errors, printed on standard error.

use document::Problem;
use schemars::JsonSchema;
use serde::Serialize;

use crate::p4::Diagnostic;

/// The error of a command, in one line on standard error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Error {
    /// Message with its causes.
    pub error: String,
    /// Locations, if the input has errors.
    #[serde(flatten)]
    pub details: Details,
}

/// Locations of the mistakes in an input file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Details {
    /// The input file, as given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Mistakes in the topology file or the tenants file, or in the lab file that cannot be imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Vec<Problem>>,
    /// Errors and warnings of the compiler in P4 programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Vec<Diagnostic>>,
}
