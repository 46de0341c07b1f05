//! Publishes data about a VM to its tenant's P4 programs on the host: statistics of its network,
//! CPUs, memory and processes, and the tenant's own values.
//!
//! The program `kaido-publish` contains only this. It is small and static, for a VM without the
//! rest of Kaido. `kaido p4 publish` does the same.
#![forbid(unsafe_code)]

mod error;
mod ivshmem;
mod options;
mod run;
mod sources;

pub use error::Error;
pub use options::{Group, Named, Options};
pub use run::{Begun, run};
