//! Numbers that packets cannot guess.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a random non-zero 15-bit prefix of a tag. The slot itself stores the full tag, which
/// proves that the tag belongs to this packet.
pub(crate) fn magic() -> u32 {
    (random() & 0x7fff).max(1)
}

/// Returns a random number that is hard to guess.
pub(crate) fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
