//! Programs that are checked, compiled, explained and tested.

use schemars::JsonSchema;
use serde::Serialize;

/// A program without errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckedProgram {
    /// The file, as given.
    pub program: String,
    /// Control-plane names of its tables.
    pub tables: Vec<String>,
    /// Warnings of the compiler.
    pub warnings: Vec<Diagnostic>,
}

/// An error or a warning of the compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Description.
    pub message: String,
    /// Location; null if it concerns the whole program.
    pub at: Option<Location>,
    /// Explanation of the location, such as the expected token.
    pub label: Option<String>,
    /// Related locations.
    pub related: Vec<Related>,
    /// Hint for a fix.
    pub help: Option<String>,
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program is rejected.
    Error,
    /// The program is accepted.
    Warning,
}

/// A location in a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Location {
    /// File name.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A location that is related to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Related {
    /// Location.
    pub at: Option<Location>,
    /// Relation to the diagnostic.
    pub why: String,
}

/// The description of a program for control planes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct P4Info {
    /// P4Info in protobuf's text format.
    pub p4info: String,
}

/// A compiled program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CompiledProgram {
    /// The written object.
    pub object: String,
    /// Number of eBPF instructions.
    pub instructions: usize,
    /// Number of maps.
    pub maps: usize,
    /// Size of the object in bytes.
    pub bytes: usize,
}

/// Contents of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ExplainedProgram {
    /// The program or object, as given.
    pub program: String,
    /// Maps.
    pub maps: Vec<ObjectMap>,
    /// Digests.
    pub digests: Vec<ObjectDigest>,
    /// Keys that it reads of its tenant's VM.
    pub vm_keys: Vec<String>,
    /// Functions.
    pub functions: Vec<Label>,
    /// Instructions in assembly text.
    pub instructions: Vec<String>,
    /// Source lines of the instructions.
    pub lines: Vec<CodeLine>,
}

/// A map of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectMap {
    /// Map name.
    pub name: String,
    /// The lookup method.
    pub kind: MapKind,
    /// Size of a key in bytes.
    pub key_bytes: u32,
    /// Size of a value in bytes.
    pub value_bytes: u32,
    /// Maximum number of entries.
    pub entries: u32,
}

/// The lookup method of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MapKind {
    /// Look-up by index.
    Array,
    /// Look-up by the whole key.
    Hash,
    /// Look-up by the longest prefix.
    #[serde(rename = "LPM trie")]
    LpmTrie,
    /// Look-up by values and masks.
    Ternary,
}

impl MapKind {
    /// Name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Hash => "hash",
            Self::LpmTrie => "LPM trie",
            Self::Ternary => "ternary",
        }
    }
}

/// A digest of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ObjectDigest {
    /// Digest name.
    pub name: String,
    /// Size of a message in bytes.
    pub bytes: u32,
}

/// A function in the instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "ObjectFunction")]
pub struct Label {
    /// Function name.
    pub name: String,
    /// Index of its first instruction.
    pub at: usize,
}

/// Source line of an instruction and of those after it, up to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeLine {
    /// Index of the instruction.
    pub at: usize,
    /// Source file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// Result of a test of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct P4TestOutcome {
    /// The test file, as given.
    pub test: String,
    /// Number of its commands.
    pub lines: usize,
    /// Lines with packets that the program processes endlessly.
    pub endless: Vec<usize>,
    /// Failures; empty if the test has passed.
    pub failures: Vec<P4TestFailure>,
}

/// A failure of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct P4TestFailure {
    /// Line in the test file, from 1; 0 for the test as a whole.
    pub line: usize,
    /// The reason. It has several lines if packets differ.
    pub why: String,
}
