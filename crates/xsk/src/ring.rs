//! Addresses of a mapped ring.

use std::ffi::c_void;

/// A mapped ring.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// `size` - 1.
    pub mask: u32,
    /// Number of entries; a power of two.
    pub size: u32,
    /// Producer index.
    pub producer: *mut u32,
    /// Consumer index.
    pub consumer: *mut u32,
    /// Entries: `u64` in fill and completion rings, [`super::Descriptor`] in RX and TX rings.
    pub entries: *mut c_void,
    /// [`super::NEED_WAKEUP`].
    pub flags: *mut u32,
}

impl Ring {
    /// A ring that is not mapped yet.
    pub const fn unmapped() -> Self {
        let (none, entries) = (std::ptr::null_mut(), std::ptr::null_mut());
        Self { mask: 0, size: 0, producer: none, consumer: none, entries, flags: none }
    }
}
