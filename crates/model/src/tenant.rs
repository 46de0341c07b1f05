//! Tenants of an AF_XDP client, with their P4 programs.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::topology::{DurationText, duration_text};

/// Place of a tenant's program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A process of its own.
    Process,
    /// The client's process.
    Inline,
    /// A virtual machine of its own.
    Vm {
        /// File of the machine's kernel; that of the running one if absent.
        kernel: Option<PathBuf>,
    },
}

/// A tenant of an AF_XDP client. Its files are relative to the file that names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tenant {
    /// Name.
    pub name: String,
    /// File of the program, P4 or an object.
    pub program: PathBuf,
    /// Interfaces, with their numbers in the program.
    pub ports: Vec<(String, u32)>,
    /// File of initial table entries.
    pub entries: Option<PathBuf>,
    /// Device id in P4Runtime.
    pub device: u64,
    /// True if packets without a verdict pass.
    pub passes_without_verdict: bool,
    /// Deadline of a verdict.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub deadline: Duration,
    /// Time for which packets wait for another process if theirs has ended.
    #[serde(serialize_with = "duration_text")]
    #[schemars(with = "DurationText")]
    pub hold: Duration,
    /// Number of packet queues.
    pub queues: u32,
    /// Place of the program.
    pub isolation: Isolation,
    /// CPU limit of the process, in percent of one CPU.
    pub cpu: Option<u32>,
    /// File in which the tenant's VM publishes its data.
    pub vm_info: Option<PathBuf>,
}
