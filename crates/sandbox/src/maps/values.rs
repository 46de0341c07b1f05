//! Storage for map values, at stable addresses.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use p4_object::Map;

use crate::error::LoadError;

/// Guard bytes on both sides, verified by tests.
const MARGIN: usize = if cfg!(test) { 64 } else { 0 };
const UNTOUCHED: u8 = 0xa5;

/// Values of a map. The stride is a power of two and at least 8 bytes.
#[derive(Debug)]
pub(crate) struct Values {
    /// Raw pointer without a slice or reference, because programs write here.
    memory: NonNull<u8>,
    layout: Layout,
    size: u32,
    shift: u32,
    entries: u32,
}

// SAFETY: the map owns the memory.
unsafe impl Send for Values {}

impl Values {
    /// Stride for values of this size, as a power of two.
    pub(crate) fn shift(value_size: u32) -> u32 {
        value_size.max(8).next_power_of_two().trailing_zeros()
    }

    pub(crate) fn new(map: &Map) -> Result<Self, LoadError> {
        let (size, entries, shift) = (map.value_size, map.max_entries, Self::shift(map.value_size));
        let bytes = u64::from(entries.max(1)) << shift;
        let none = || LoadError::NoMemory { map: map.name.clone(), bytes };
        let whole = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_add(2 * MARGIN));
        let layout = whole.and_then(|whole| Layout::from_size_align(whole, 64).ok());
        let layout = layout.ok_or_else(none)?;
        // SAFETY: the layout has at least 8 bytes.
        let begin = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(none)?;
        // SAFETY: both guards are within the layout.
        let memory = unsafe {
            begin.write_bytes(UNTOUCHED, MARGIN);
            begin.add(layout.size() - MARGIN).write_bytes(UNTOUCHED, MARGIN);
            begin.add(MARGIN)
        };
        Ok(Self { memory, layout, size, shift, entries })
    }

    /// Start of the allocation.
    fn begin(&self) -> *mut u8 {
        // SAFETY: the guard precedes the memory.
        unsafe { self.memory.as_ptr().sub(MARGIN) }
    }

    /// True if the guard bytes are unchanged.
    #[cfg(test)]
    pub(crate) fn is_intact(&self) -> bool {
        // SAFETY: the allocation is owned and initialized as a whole.
        let all = unsafe { std::slice::from_raw_parts(self.begin(), self.layout.size()) };
        let (front, rest) = all.split_at(MARGIN);
        let (_, back) = rest.split_at(rest.len() - MARGIN);
        front == [UNTOUCHED; MARGIN] && back == [UNTOUCHED; MARGIN]
    }

    pub(crate) fn memory(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// Offset of an entry's value from the first value.
    pub(crate) fn offset(&self, entry: u32) -> u64 {
        u64::from(entry) << self.shift
    }

    /// Address of bytes that lie within one value.
    pub(crate) fn place(&self, offset: u64, size: u64) -> Option<NonNull<u8>> {
        let inside = offset & ((1 << self.shift) - 1);
        let fits = offset >> self.shift < u64::from(self.entries)
            && inside <= u64::from(self.size)
            && size <= u64::from(self.size) - inside;
        // SAFETY: the offset is within the memory.
        fits.then(|| unsafe { self.memory.add(offset as usize) })
    }

    fn at(&self, entry: u32) -> *mut u8 {
        assert!(entry < self.entries, "entry {entry} of {}", self.entries);
        // SAFETY: just checked.
        unsafe { self.memory.as_ptr().add(self.offset(entry) as usize) }
    }

    pub(crate) fn get(&self, entry: u32) -> &[u8] {
        // SAFETY: the bytes of a value. Nothing writes them while the map is borrowed: programs run
        // only with a mutable borrow of the instance.
        unsafe { std::slice::from_raw_parts(self.at(entry), self.size as usize) }
    }

    pub(crate) fn set(&mut self, entry: u32, value: &[u8]) {
        assert_eq!(value.len(), self.size(), "the value's size is checked by callers");
        // SAFETY: the size is checked, and a slice cannot overlap this memory.
        unsafe { self.copy(entry, value.as_ptr()) };
    }

    /// Writes a value. The source may overlap this or another value.
    ///
    /// # Safety
    ///
    /// `from` is readable for the size of a value.
    pub(crate) unsafe fn copy(&mut self, entry: u32, from: *const u8) {
        // SAFETY: `at` checks the entry; `copy` allows overlap.
        unsafe { std::ptr::copy(from, self.at(entry), self.size as usize) };
    }

    pub(crate) fn clear(&mut self) {
        // SAFETY: the map owns all of the memory.
        unsafe { self.memory.write_bytes(0, self.layout.size() - 2 * MARGIN) };
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout and is freed only here.
        unsafe { dealloc(self.begin(), self.layout) };
    }
}
