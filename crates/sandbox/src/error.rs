//! Errors of loading a program.

use p4_object::BadObject;

use crate::maps::error::MapError;

/// Reason that a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The object is malformed.
    #[error(transparent)]
    Structure(#[from] BadObject),
    /// The maps exceed the memory limit.
    #[error(
        "its maps take {needed} bytes, and {allowed} are allowed; map `{largest}` is the largest"
    )]
    Memory {
        /// Required memory in bytes.
        needed: u64,
        /// Memory limit in bytes.
        allowed: u64,
        /// Name of the largest map.
        largest: String,
    },
    /// Too many instructions. Code shared by several functions is compiled, and counted, once for
    /// each.
    #[error(
        "its functions have more than {most} instructions; code shared by several functions counts for each"
    )]
    TooLong {
        /// Maximum number of instructions that are compiled.
        most: usize,
    },
    /// An initial entry does not fit into its map.
    #[error("map `{map}`, as the program fills it: {why}")]
    Entry {
        /// Name of the map.
        map: String,
        /// Reason that the map rejects the entry.
        why: MapError,
    },
    /// Memory allocation failed.
    #[error("cannot allocate {bytes} bytes for map `{map}`")]
    NoMemory {
        /// Name of the map.
        map: String,
        /// Required memory in bytes.
        bytes: u64,
    },
    /// The code generator failed.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
    /// The code generator does not support the host.
    #[error("the compiler does not support this machine: {0}")]
    Machine(String),
}
