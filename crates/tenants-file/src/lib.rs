//! The tenants file of `kaido xsk`: text -> tenants with their programs and ports, or all errors in
//! the text.
//!
//! `document` deserializes the file into the grammar's serde types (`file`); `resolve` then checks
//! names, numbers and references between tenants. Properties of the machine, such as the existence
//! of a program's file, are not checked here.
#![forbid(unsafe_code)]

mod file;
mod resolve;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use document::{FileKind, Problems};

pub use file::json_schema;
pub use resolve::is_interface_name;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Name.
    pub name: String,
    /// File of the program, P4 or an object; relative to the tenants file.
    pub program: PathBuf,
    /// Interfaces, with their numbers in the program.
    pub ports: Vec<(String, u32)>,
    /// File of initial table entries; relative to the tenants file.
    pub entries: Option<PathBuf>,
    /// Device id in P4Runtime.
    pub device: u64,
    /// True if packets without a verdict pass.
    pub passes_without_verdict: bool,
    /// Deadline of a verdict.
    pub deadline: Duration,
    /// Time for which packets wait for another process if theirs has ended.
    pub hold: Duration,
    /// Number of packet queues.
    pub queues: u32,
    /// True if the program runs in the client's process.
    pub is_inline: bool,
    /// CPU limit of the process, in percent of one CPU.
    pub cpu: Option<u32>,
    /// File in which the tenant's VM publishes its data; relative to the tenants file.
    pub vm_info: Option<PathBuf>,
}

const KIND: FileKind = FileKind {
    max_mib: 16,
    large: "split it into files of several `kaido xsk run`",
    empty: "write at least `tenants:`",
    renamed: &[],
};

/// Parses a tenants file. `file_name` is used only in messages.
pub fn parse(file_name: &str, text: &str) -> Result<Vec<Tenant>, Problems> {
    let (tree, file, report) =
        document::read(text, &KIND).map_err(|report| report.finish(file_name))?;
    resolve::resolve(&tree, file, report).map_err(|report| report.finish(file_name))
}
