//! Errors of map operations.

use serde::{Deserialize, Serialize};

/// Error of a map operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MapError {
    /// The map is full.
    #[error("the map is full: it has {0} entries")]
    Full(u32),
    /// The entry does not exist.
    #[error("there is no such entry")]
    Absent,
    /// The key size is wrong.
    #[error("a key of {given} bytes, where {wanted} are wanted")]
    KeySize {
        /// Actual size.
        given: usize,
        /// Expected size.
        wanted: usize,
    },
    /// The value size is wrong.
    #[error("a value of {given} bytes, where {wanted} are wanted")]
    ValueSize {
        /// Actual size.
        given: usize,
        /// Expected size.
        wanted: usize,
    },
    /// The prefix is longer than the key.
    #[error("a prefix of {given} bits, and the limit is {most}")]
    Prefix {
        /// Actual length.
        given: u32,
        /// Maximum length.
        most: u32,
    },
    /// The range of an entry is empty.
    #[error("an entry that nothing fits: from {from:#x} to {to:#x} under mask {mask:#x}")]
    Empty {
        /// First value of the range.
        from: u64,
        /// Last value of the range.
        to: u64,
        /// Mask of the word.
        mask: u64,
    },
    /// The kind of map does not support the operation.
    #[error("this kind of map does not do that")]
    Kind,
    /// The map does not exist.
    #[error("there is no such map")]
    NoMap,
}
