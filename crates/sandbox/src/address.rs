//! A program's addresses: numbers that mean a region and a place in it, the same in every run and on
//! every machine. None of them is an address of this process.

/// Bits of an address that say where in its region it is.
pub(crate) const REGION_BITS: u32 = 40;

const fn region(number: u64) -> u64 {
    number << REGION_BITS
}

/// The packet's first byte, wherever the packet is. What is put in front of it begins here, too.
pub(crate) const PACKET: u64 = region(1);
/// `struct standard_metadata`.
pub(crate) const METADATA: u64 = region(2);
/// The stack, its lowest byte.
pub(crate) const STACK: u64 = region(3);
/// What a program gets as its context: there is nothing behind it.
pub(crate) const CONTEXT: u64 = region(4);
/// The first map, for helpers; the others follow. There is nothing behind it.
pub(crate) const MAPS: u64 = region(5);
/// The first map's values; each map has a region of its own.
pub(crate) const VALUES: u64 = region(16);

/// Bytes of a function's frame.
pub(crate) const FRAME_SIZE: u64 = 512;
/// The most functions that have called each other, the first one included.
pub(crate) const MAX_FRAMES: u64 = 8;
/// Bytes of the stack.
pub(crate) const STACK_SIZE: u64 = FRAME_SIZE * MAX_FRAMES;
/// Bytes of `struct standard_metadata`.
pub(crate) const METADATA_SIZE: u64 = 24;

/// Where the values of a map begin.
pub(crate) const fn values_of(map: usize) -> u64 {
    VALUES + region(map as u64)
}

/// What `lddw` of a map loads.
pub(crate) const fn handle_of(map: usize) -> u64 {
    MAPS + map as u64
}
