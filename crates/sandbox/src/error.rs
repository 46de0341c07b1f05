//! Why a program cannot be loaded.

use p4::object::BadObject;

use crate::maps::MapError;

/// Why a program cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its structure is wrong.
    #[error(transparent)]
    Structure(#[from] BadObject),
    /// Its maps are too large.
    #[error(
        "its maps take {needed} bytes, and {allowed} are allowed; map `{largest}` is the largest"
    )]
    Memory {
        /// What they take.
        needed: u64,
        /// What there may be.
        allowed: u64,
        /// The largest one.
        largest: String,
    },
    /// Too much code. Code that several functions have is compiled for each.
    #[error(
        "its functions have more than {most} instructions, those that they share counted for each"
    )]
    TooLong {
        /// The most instructions that are compiled.
        most: usize,
    },
    /// An entry that a map has from the beginning has no room in it.
    #[error("map `{map}`, as the program fills it: {why}")]
    Entry {
        /// The map.
        map: String,
        /// Why it does not take it.
        why: MapError,
    },
    /// There is no memory.
    #[error("there is no memory of {bytes} bytes for map `{map}`")]
    NoMemory {
        /// The map.
        map: String,
        /// What it takes.
        bytes: u64,
    },
    /// The code generator gives up.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
    /// There is no code generator for this machine.
    #[error("there is no compiler for this machine: {0}")]
    Machine(String),
}
