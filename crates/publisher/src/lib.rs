//! Publishes what a VM knows of itself, to its tenant's P4 programs on the host: the figures of its
//! network, processors, memory and processes, and whatever else the tenant says.
//!
//! The program `kaido-publish` is this alone, small and static, for a VM that has nothing else of Kaido's;
//! `kaido p4 publish` is the same.
#![forbid(unsafe_code)]

mod error;
mod ivshmem;
mod options;
mod run;
mod sources;

pub use error::Error;
pub use options::{Group, Named, Options};
pub use run::{Begun, run};
