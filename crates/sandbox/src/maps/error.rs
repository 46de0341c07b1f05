//! Errors of map operations.

use serde::{Deserialize, Serialize};

/// Error of a map operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MapError {
    /// The map is full.
    #[error("the map is full: it has {0} entries")]
    Full(u32),
    /// The entry does not exist.
    #[error("no such entry")]
    Absent,
    /// The key size is wrong.
    #[error("key of {given} bytes, expected {wanted}")]
    KeySize {
        /// Actual size.
        given: usize,
        /// Expected size.
        wanted: usize,
    },
    /// The value size is wrong.
    #[error("value of {given} bytes, expected {wanted}")]
    ValueSize {
        /// Actual size.
        given: usize,
        /// Expected size.
        wanted: usize,
    },
    /// The prefix is longer than the key.
    #[error("prefix length {given} exceeds {most}")]
    Prefix {
        /// Actual length.
        given: u32,
        /// Maximum length.
        most: u32,
    },
    /// The range of an entry is empty.
    #[error("empty range: {from:#x} to {to:#x} (mask {mask:#x})")]
    Empty {
        /// First value of the range.
        from: u64,
        /// Last value of the range.
        to: u64,
        /// Mask of the word.
        mask: u64,
    },
    /// The kind of map does not support the operation.
    #[error("this type of map does not support the operation")]
    Kind,
    /// The map does not exist.
    #[error("no such map")]
    NoMap,
}
