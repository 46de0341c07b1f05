//! Entries and flags of rings (linux/if_xdp.h).

/// Flag of a fill or TX ring: the kernel needs a system call to continue (XDP_RING_NEED_WAKEUP).
pub const NEED_WAKEUP: u32 = 1;

/// Mask of the chunk's address in an unaligned address; the upper 16 bits are the packet's offset
/// (XSK_UNALIGNED_BUF_ADDR_MASK).
pub const UNALIGNED_ADDRESS: u64 = (1 << UNALIGNED_OFFSET_SHIFT) - 1;
/// Position of the offset in an unaligned address (XSK_UNALIGNED_BUF_OFFSET_SHIFT).
pub const UNALIGNED_OFFSET_SHIFT: u32 = 48;

/// Entry of an RX or TX ring (`struct xdp_desc`), in host byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// Offset of the packet in the UMEM, in bytes. With unaligned chunks, the upper 16 bits are an
    /// offset to be added to the lower 48.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// XDP_PKT_CONTD and XDP_TX_METADATA.
    pub options: u32,
}
