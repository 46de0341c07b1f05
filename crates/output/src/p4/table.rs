//! Tables, counters, meters and digests of a running program.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// An entry of a table, or its default action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TableEntry {
    /// Table name.
    pub table: String,
    /// Match fields in the syntax of `kaido p4 table add`, by name.
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, String>,
    /// Priority; null in tables without priorities.
    pub priority: Option<i32>,
    /// Action in the syntax of `kaido p4 table add`; empty if it is not known.
    pub action: String,
    /// True for the default action.
    pub default: bool,
    /// True if the program defines the entry and it cannot be changed.
    pub constant: bool,
}

/// The change that a command has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    /// An entry was added.
    Added,
    /// An entry has another action.
    Modified,
    /// An entry was deleted.
    Deleted,
    /// A value was set.
    Set,
}

impl Done {
    /// Name in the output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Set => "set",
        }
    }
}

/// An entry that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WrittenEntry {
    /// Table name.
    pub table: String,
    /// The change.
    pub done: Done,
}

/// A default action that was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DefaultAction {
    /// Table name.
    pub table: String,
    /// The change.
    pub done: Done,
    /// The default action now.
    pub action: String,
}

/// A cell of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CounterCell {
    /// Name of the counter, or of the table with a counter per entry.
    pub counter: String,
    /// Index, or match fields of the entry.
    pub cell: String,
    /// Packets.
    pub packets: Option<i64>,
    /// Bytes.
    pub bytes: Option<i64>,
}

/// A cell of a meter. Rates and burst sizes are in bytes or packets, depending on the meter, and
/// null for a cell without rates, in which every packet is green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MeterCell {
    /// Name of the meter, or of the table with a meter per entry.
    pub meter: String,
    /// Index, or match fields of the entry.
    pub cell: String,
    /// Committed information rate, per second.
    pub cir: Option<i64>,
    /// Committed burst size.
    pub cburst: Option<i64>,
    /// Peak information rate, per second.
    pub pir: Option<i64>,
    /// Peak burst size.
    pub pburst: Option<i64>,
}

/// Cells of a counter that were set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetCounter {
    /// Name of the counter, or of the table with a counter per entry.
    pub counter: String,
    /// Cell index or match key. Empty selects all cells.
    pub cell: String,
    /// The change.
    pub done: Done,
}

/// Cells of a meter that were set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetMeter {
    /// Name of the meter, or of the table with a meter per entry.
    pub meter: String,
    /// Cell index or match key. Empty selects all cells.
    pub cell: String,
    /// The change.
    pub done: Done,
}

/// A digest that has arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DigestValue {
    /// Digest name.
    pub digest: String,
    /// Data.
    pub data: DigestData,
}

/// Data of a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DigestData {
    /// A number, an address, `true` or `false`, as text.
    One(String),
    /// Members of a struct by name, or of a tuple by index.
    Several(BTreeMap<String, DigestData>),
}
