//! libxdp's view of a ring.

use std::ffi::c_void;

/// A ring for libxdp's inline functions (`struct xsk_ring_prod` and `struct xsk_ring_cons` of
/// xdp/xsk.h, whose fields are the same).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// Producer index that the owner of this struct has reached or seen last.
    pub cached_producer: u32,
    /// Consumer index that the owner has reached or seen last; plus `size` on the producer's side.
    pub cached_consumer: u32,
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
        Self {
            cached_producer: 0,
            cached_consumer: 0,
            mask: 0,
            size: 0,
            producer: none,
            consumer: none,
            entries,
            flags: none,
        }
    }
}
