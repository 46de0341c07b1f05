//! Status of a sandbox.

use crate::process::isolation::Isolation;
use crate::program::Executor;

/// Status of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Process id, if a process is running.
    pub process: Option<u32>,
    /// True if the tenant is evicted and gets no further process.
    pub is_evicted: bool,
    /// Version of the program: 1 at first, incremented by each swap.
    pub version: u64,
    /// Means by which the program is executed.
    pub executor: Executor,
    /// True if the process hosts the program, with no isolation but the program's own bounds.
    pub is_hosted: bool,
    /// Isolation of the process.
    pub isolation: Isolation,
    /// Missing parts of the usual isolation, and the CPU limit if it is configured and not set.
    pub lacks: Isolation,
    /// Reason that the last process was killed.
    pub last_failure: Option<String>,
}
