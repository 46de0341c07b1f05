//! Values as the programs' maps hold them.

/// A value whose bytes are all its own: what may be copied to and from a map.
///
/// # Safety
///
/// The type is `repr(C)`, without padding, and every pattern of bits is one of its values.
pub unsafe trait Abi: Copy + Default + Send + Sync + 'static {}

// SAFETY: integers have no padding and no invalid values.
unsafe impl Abi for u32 {}
// SAFETY: as above.
unsafe impl Abi for u64 {}

/// A value's bytes.
pub(crate) fn bytes_of<T: Abi>(value: &T) -> &[u8] {
    // SAFETY: an Abi type has no padding, so each byte is initialised; the slice lives as long as
    // the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The bytes of many values, one behind the other.
pub(crate) fn bytes_of_all<T: Abi>(values: &[T]) -> &[u8] {
    // SAFETY: as in `bytes_of`; a slice has no gaps between its elements.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The value that `bytes` hold, or none if they are too few. More are ignored: the kernel rounds a
/// per-CPU value's size up.
pub(crate) fn value_of<T: Abi>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: the bytes are as many as the type's, and every pattern of them is a value.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
