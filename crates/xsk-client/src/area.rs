//! Memory of a UMEM.

use std::ptr::NonNull;

use xsk::{UNALIGNED_ADDRESS, UNALIGNED_OFFSET_SHIFT};

/// The client's packet memory, divided into chunks.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    base: NonNull<u8>,
    bytes: u64,
    chunk: u64,
    /// Packets may cross chunks (XDP_UMEM_UNALIGNED_CHUNK_FLAG).
    is_unaligned: bool,
}

// SAFETY: the memory is shared with the kernel anyway, and accessed through raw pointers only.
unsafe impl Send for Area {}

impl Area {
    /// Describes the memory at `base`; `None` if it is null or the chunk size is zero.
    pub fn new(base: *mut u8, bytes: u64, chunk: u32, is_unaligned: bool) -> Option<Self> {
        let base = NonNull::new(base).filter(|_| chunk > 0)?;
        Some(Self { base, bytes, chunk: chunk.into(), is_unaligned })
    }

    /// Returns true if a range of addresses overlaps the memory.
    pub(crate) fn overlaps(&self, start: usize, length: usize) -> bool {
        let (base, bytes) = (self.base.addr().get() as u64, self.bytes);
        let (start, end) = (start as u64, (start as u64).saturating_add(length as u64));
        start < base.saturating_add(bytes) && base < end
    }

    /// Offsets of an address: of its chunk in the memory, and in the chunk.
    fn offsets(&self, address: u64) -> (u64, u64) {
        match self.is_unaligned {
            true => (address & UNALIGNED_ADDRESS, address >> UNALIGNED_OFFSET_SHIFT),
            false => (address - address % self.chunk, address % self.chunk),
        }
    }

    /// Number of bytes from an address to the end of its chunk, or of the memory.
    pub(crate) fn room(&self, address: u64) -> u64 {
        let (chunk, offset) = self.offsets(address);
        let left = self.bytes.saturating_sub(chunk).saturating_sub(offset);
        left.min(self.chunk.saturating_sub(offset))
    }

    /// Returns true if a packet may become longer. An unaligned address without an offset may lie
    /// anywhere in its chunk: a longer packet could overwrite the next one.
    fn may_grow(&self, address: u64) -> bool {
        !self.is_unaligned || self.offsets(address).1 > 0
    }

    /// Address in memory of a packet whose length changes; `None` if it does not fit.
    pub(crate) fn resized(&self, address: u64, before: u32, length: u32) -> Option<NonNull<u8>> {
        self.packet(address, length).filter(|_| self.may_grow(address) || length <= before)
    }

    /// Address in memory of a packet, and the number of bytes that it may have there; `None` if it is
    /// empty, or does not fit.
    pub(crate) fn place(&self, address: u64, length: u32) -> Option<(NonNull<u8>, usize)> {
        let packet = self.packet(address, length)?;
        let room = if self.may_grow(address) { self.room(address) } else { length.into() };
        Some((packet, usize::try_from(room).ok()?))
    }

    /// Address in memory of a packet; `None` if it is empty, or does not fit at this address.
    pub(crate) fn packet(&self, address: u64, length: u32) -> Option<NonNull<u8>> {
        let is_in = u64::from(length) <= self.room(address) && length > 0;
        let (chunk, offset) = self.offsets(address);
        // SAFETY: the offset is within the memory that the client has registered.
        is_in.then(|| unsafe { self.base.add((chunk + offset) as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_lies_in_its_chunk() {
        let mut memory = [0_u8; 4096];
        let area = Area::new(memory.as_mut_ptr(), 4096, 1024, false).unwrap();
        assert_eq!((area.room(0), area.room(1000), area.room(4095)), (1024, 24, 1));
        assert_eq!((area.room(4096), area.room(u64::MAX)), (0, 0));
        assert!(area.packet(1000, 24).is_some() && area.packet(1000, 25).is_none());
        assert!(area.packet(u64::MAX, 1).is_none() && area.packet(4096, 1).is_none());
        assert!(Area::new(memory.as_mut_ptr(), 4096, 0, false).is_none());
    }

    #[test]
    fn ranges_overlap_the_memory() {
        let mut memory = [0_u8; 4096];
        let area = Area::new(memory.as_mut_ptr(), 4096, 1024, false).unwrap();
        let base = memory.as_ptr().addr();
        assert!(area.overlaps(base, 1) && area.overlaps(base + 4095, 1));
        assert!(area.overlaps(base - 1, 2) && area.overlaps(0, usize::MAX));
        assert!(!area.overlaps(base - 1, 1) && !area.overlaps(base + 4096, 9));
    }

    #[test]
    fn an_unaligned_address_has_an_offset() {
        let mut memory = [0_u8; 4096];
        let area = Area::new(memory.as_mut_ptr(), 4096, 1024, true).unwrap();
        assert_eq!((area.room(1000), area.room(1000 | 100 << 48)), (1024, 924));
        assert_eq!(area.room(4000 | 90 << 48), 6);
        assert_eq!(area.packet(4000 | 90 << 48, 7), None);
        assert_eq!(area.room(1000 | 1025 << 48), 0);
        let fits = |address, length| area.resized(address, 60, length).is_some();
        assert!(fits(1000, 60) && !fits(1000, 61), "the chunk may begin before the address");
        assert!(fits(1000 | 100 << 48, 924) && !fits(1000 | 100 << 48, 925));
        let aligned = Area::new(memory.as_mut_ptr(), 4096, 1024, false).unwrap();
        assert!(aligned.resized(1024, 60, 1024).is_some());
    }
}
