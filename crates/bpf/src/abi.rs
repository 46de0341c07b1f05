//! Values in the representation of the programs' maps.

/// A value that consists of its bytes alone and can be copied to and from a map.
///
/// # Safety
///
/// The type is `repr(C)`, without padding, and every bit pattern is a valid value.
pub unsafe trait Abi: Copy + Default + Send + Sync + 'static {}

// SAFETY: integers have no padding and no invalid values.
unsafe impl Abi for u32 {}
// SAFETY: as above.
unsafe impl Abi for u64 {}

/// Returns the bytes of a value.
pub(crate) fn bytes_of<T: Abi>(value: &T) -> &[u8] {
    // SAFETY: an Abi type has no padding, so each byte is initialized; the slice lives as long as
    // the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Returns the bytes of consecutive values.
pub(crate) fn bytes_of_all<T: Abi>(values: &[T]) -> &[u8] {
    // SAFETY: as in `bytes_of`; a slice has no gaps between its elements.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the value that `bytes` contain, or none if they are too few. Excess bytes are ignored:
/// the kernel rounds up the size of per-CPU values.
pub(crate) fn value_of<T: Abi>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the length is that of the type, and every bit pattern is a valid value.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
