//! The SRv6 data plane's program and its tables.

mod changes;
mod counters;
mod maps;
mod neighbors;
mod program;
mod replay;
mod sizes;
mod versions;

/// Value types of the tables, as `abi.h` defines them.
pub use crate::skeleton::types;
pub use program::Srv6;
pub use sizes::{FUNCTIONS, Sizes};
