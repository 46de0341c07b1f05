//! `kaido lab import`.

use schemars::JsonSchema;
use serde::Serialize;

/// An imported lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedLab {
    /// Lab name.
    pub lab: String,
    /// The written topology file; null without `--out`.
    pub file: Option<String>,
    /// Text of the topology file.
    pub topology: String,
    /// Omissions and assumptions.
    pub notes: Vec<ImportNote>,
}

/// A difference between the original lab and the topology file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportNote {
    /// Line in the original file, from 1; null if the note is not about a single line.
    pub line: Option<usize>,
    /// Description.
    pub text: String,
}
