//! Rings that the kernel shares with the owner of a socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::mapping::Mapping;
use crate::{Descriptor, Ring};

/// Offsets of a ring's parts in its mapping (`struct xdp_ring_offset`), in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    producer: u64,
    consumer: u64,
    entries: u64,
    flags: u64,
}

impl Offsets {
    /// Offsets for rings of this process alone: each index on a cache line of its own.
    pub const OWN: Self = Self { producer: 0, consumer: 64, flags: 128, entries: 192 };

    /// Returns the offsets of a socket's rings, by [`Kind`].
    ///
    /// # Errors
    ///
    /// Fails if the descriptor is not an AF_XDP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<[Self; 4]> {
        // SAFETY: xdp_mmap_offsets is plain C data, for which all zeros is a value.
        let mut all: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&all) as libc::socklen_t;
        let (file, option) = (socket.as_raw_fd(), libc::XDP_MMAP_OFFSETS);
        // SAFETY: both pointers are to values that live until the call returns.
        let got = unsafe {
            let all = (&raw mut all).cast();
            libc::getsockopt(file, libc::SOL_XDP, option, all, &raw mut length)
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        let one = |at: libc::xdp_ring_offset| Self {
            producer: at.producer,
            consumer: at.consumer,
            entries: at.desc,
            flags: at.flags,
        };
        Ok([all.fr, all.cr, all.rx, all.tx].map(one))
    }

    /// Number of bytes of a ring with `size` entries of `entry` bytes.
    pub(crate) fn bytes(&self, size: u32, entry: usize) -> usize {
        self.entries as usize + size as usize * entry
    }

    /// Returns a ring in a mapping.
    pub(crate) fn ring(&self, mapping: &Mapping, size: u32) -> io::Result<Ring> {
        Ok(Ring {
            mask: size.wrapping_sub(1),
            size,
            producer: mapping.at(self.producer)?,
            consumer: mapping.at(self.consumer)?,
            entries: mapping.at(self.entries)?,
            flags: mapping.at(self.flags)?,
        })
    }
}

/// The rings of a socket. Arrays of rings are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Chunks for received packets.
    Fill,
    /// Transmitted chunks.
    Completion,
    /// Received packets.
    Rx,
    /// Packets to transmit.
    Tx,
}

impl Kind {
    /// All rings.
    pub const ALL: [Self; 4] = [Self::Fill, Self::Completion, Self::Rx, Self::Tx];

    /// Offset by which mmap(2) selects the ring.
    pub fn page_offset(self) -> u64 {
        match self {
            Self::Fill => libc::XDP_UMEM_PGOFF_FILL_RING,
            Self::Completion => libc::XDP_UMEM_PGOFF_COMPLETION_RING,
            Self::Rx => libc::XDP_PGOFF_RX_RING.cast_unsigned(),
            Self::Tx => libc::XDP_PGOFF_TX_RING.cast_unsigned(),
        }
    }

    /// Socket option that sets the ring's size.
    pub fn option(self) -> libc::c_int {
        match self {
            Self::Fill => libc::XDP_UMEM_FILL_RING,
            Self::Completion => libc::XDP_UMEM_COMPLETION_RING,
            Self::Rx => libc::XDP_RX_RING,
            Self::Tx => libc::XDP_TX_RING,
        }
    }

    /// Number of 64-bit words of an entry.
    pub fn words(self) -> usize {
        match self {
            Self::Fill | Self::Completion => 1,
            Self::Rx | Self::Tx => size_of::<Descriptor>() / size_of::<u64>(),
        }
    }
}

/// Mapped rings of a socket.
#[derive(Debug)]
pub struct KernelRings {
    rings: [Ring; 4],
    _mappings: Vec<Mapping>,
}

// SAFETY: the rings' pointers are only used by their ends.
unsafe impl Send for KernelRings {}
// SAFETY: as above.
unsafe impl Sync for KernelRings {}

impl KernelRings {
    /// Maps those rings of a socket that have a size, by [`Kind`].
    ///
    /// # Errors
    ///
    /// Fails if the kernel does not map them.
    pub fn map(socket: BorrowedFd<'_>, sizes: [u32; 4]) -> io::Result<Self> {
        let offsets = Offsets::of(socket)?;
        let (mut rings, mut mappings) = ([Ring::unmapped(); 4], Vec::new());
        for (at, kind) in Kind::ALL.into_iter().enumerate().filter(|(at, _)| sizes[*at] > 0) {
            let bytes = offsets[at].bytes(sizes[at], kind.words() * size_of::<u64>());
            let place = libc::off_t::try_from(kind.page_offset()).map_err(io::Error::other)?;
            let mapping = Mapping::shared(bytes, socket, place)?;
            rings[at] = offsets[at].ring(&mapping, sizes[at])?;
            mappings.push(mapping);
        }
        Ok(Self { rings, _mappings: mappings })
    }

    /// Returns a ring; of no size if it is not mapped.
    pub fn ring(&self, kind: Kind) -> &Ring {
        &self.rings[kind as usize]
    }
}
