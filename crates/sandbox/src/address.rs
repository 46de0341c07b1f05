//! Program addresses. An address encodes a region and an offset, and is the same in every run and
//! on every machine. It is never an address of this process.

/// Number of address bits that hold the offset in the region.
pub(crate) const REGION_BITS: u32 = 40;

const fn region(number: u64) -> u64 {
    number << REGION_BITS
}

/// First byte of the packet, at any position in memory. A prepended header starts at this address,
/// too.
pub(crate) const PACKET: u64 = region(1);
/// `struct standard_metadata`.
pub(crate) const METADATA: u64 = region(2);
/// Lowest byte of the stack.
pub(crate) const STACK: u64 = region(3);
/// Context pointer passed to the program. It cannot be dereferenced.
pub(crate) const CONTEXT: u64 = region(4);
/// Handle of the first map, for helpers; the others follow. Handles cannot be dereferenced.
pub(crate) const MAPS: u64 = region(5);
/// Values of the first map; each map has its own region.
pub(crate) const VALUES: u64 = region(16);

/// Size of a stack frame in bytes.
pub(crate) const FRAME_SIZE: u64 = 512;
/// Maximum call depth, including the entry function.
pub(crate) const MAX_FRAMES: u64 = 8;
/// Size of the stack in bytes.
pub(crate) const STACK_SIZE: u64 = FRAME_SIZE * MAX_FRAMES;
/// Size of `struct standard_metadata` in bytes.
pub(crate) const METADATA_SIZE: u64 = 24;

/// Base address of a map's values.
pub(crate) const fn values_of(map: usize) -> u64 {
    VALUES + region(map as u64)
}

/// Map handle loaded by `lddw`.
pub(crate) const fn handle_of(map: usize) -> u64 {
    MAPS + map as u64
}
