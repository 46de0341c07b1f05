//! Numbers that packets cannot guess.

/// Returns a random non-zero 15-bit prefix of a tag. The slot itself stores the full tag, which
/// proves that the tag belongs to this packet.
pub(crate) fn magic() -> u32 {
    (random() & 0x7fff).max(1)
}

/// Returns a random number of the kernel's generator (getrandom(2)), which has been seeded since boot.
pub(crate) fn random() -> u32 {
    getrandom::u32().expect("getrandom(2) without flags does not fail on Linux")
}
