//! A packet in caller-provided memory.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// Maximum size of a packet's memory in bytes.
pub(crate) const MAX_MEMORY: usize = 1 << 24;

/// A packet in caller-provided memory, for example a UMEM frame. Bytes before the packet are
/// headroom, bytes after it are tailroom.
#[derive(Debug)]
pub struct PacketBuffer<'m> {
    pub(crate) memory: NonNull<u8>,
    pub(crate) size: u32,
    pub(crate) start: u32,
    pub(crate) length: u32,
    /// True if the packet's bytes have been moved.
    pub(crate) has_moved: bool,
    of: PhantomData<&'m mut [u8]>,
}

impl<'m> PacketBuffer<'m> {
    /// Creates a buffer for the packet of `length` bytes that starts at `start` of `memory`.
    /// Returns `None` if the packet exceeds the memory, or if the memory exceeds 16 MiB.
    pub fn new(memory: &'m mut [u8], start: usize, length: usize) -> Option<Self> {
        // SAFETY: the slice is borrowed mutably for 'm, so it is readable and writable.
        unsafe { Self::from_raw(NonNull::from_mut(memory).cast(), memory.len(), start, length) }
    }

    /// Creates a buffer in memory that others may write while a program runs on it.
    ///
    /// # Safety
    ///
    /// `memory` is readable and writable for `size` bytes during the lifetime of the buffer, and
    /// this process has no references to it.
    pub unsafe fn from_raw(
        memory: NonNull<u8>,
        size: usize,
        start: usize,
        length: usize,
    ) -> Option<Self> {
        let fits = size <= MAX_MEMORY && start.checked_add(length)? <= size;
        // The casts do not truncate: all values are at most 2^24.
        fits.then_some(Self {
            memory,
            size: size as u32,
            start: start as u32,
            length: length as u32,
            has_moved: false,
            of: PhantomData,
        })
    }

    /// Returns a copy of the packet, because its memory may change concurrently.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        // SAFETY: start + length <= size, the memory outlives the buffer, and the new vector does
        // not overlap it.
        unsafe { self.data().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }

    /// Offset of the packet in its memory.
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Length of the packet in bytes.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Returns true if the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn data(&self) -> *mut u8 {
        // SAFETY: start <= size.
        unsafe { self.memory.as_ptr().add(self.start as usize) }
    }

    /// Prepends `by` zero bytes, or removes the first `-by` bytes. Moves the packet into the
    /// tailroom if the headroom is too small. Returns false if there is not enough room, or if the
    /// packet is too short.
    pub(crate) fn adjust_head(&mut self, by: i32) -> bool {
        let Ok(more) = u32::try_from(by) else {
            let less = by.unsigned_abs();
            let fits = less <= self.length;
            if fits {
                self.start += less;
                self.length -= less;
            }
            return fits;
        };
        if more > self.size - self.length {
            return false;
        }
        if more <= self.start {
            self.start -= more;
        } else {
            // Move as little as possible: use all of the headroom.
            let from = self.data();
            self.start = 0;
            self.has_moved = true;
            // SAFETY: `more` + length <= size, so both ranges are in the memory; `copy` allows
            // overlap.
            unsafe {
                let to = self.memory.as_ptr().add(more as usize);
                std::ptr::copy(from, to, self.length as usize);
            }
        }
        self.length += more;
        // SAFETY: `more` <= length, start + length <= size.
        unsafe { std::ptr::write_bytes(self.data(), 0, more as usize) };
        true
    }

    /// Truncates the packet to `length` bytes and returns the number of bytes removed.
    pub(crate) fn truncate(&mut self, length: u32) -> u32 {
        let cut = self.length.saturating_sub(length);
        self.length -= cut;
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_lies_in_its_memory() {
        let mut memory = [0; 16];
        assert!(PacketBuffer::new(&mut memory, 0, 16).is_some());
        assert!(PacketBuffer::new(&mut memory, 16, 0).is_some());
        assert!(PacketBuffer::new(&mut memory, 1, 16).is_none());
        assert!(PacketBuffer::new(&mut memory, usize::MAX, 2).is_none());
    }

    #[test]
    fn heads_grow_into_headroom_then_tailroom() {
        let mut memory = *b"..abcd....";
        let mut packet = PacketBuffer::new(&mut memory, 2, 4).unwrap();
        assert!(packet.adjust_head(2));
        assert_eq!((packet.start(), &packet.bytes()[..]), (0, &b"\0\0abcd"[..]));
        assert!(packet.adjust_head(4));
        assert_eq!((packet.start(), &packet.bytes()[..]), (0, &b"\0\0\0\0\0\0abcd"[..]));
        assert!(!packet.adjust_head(1));
        assert!(packet.adjust_head(-7));
        assert_eq!((packet.start(), &packet.bytes()[..]), (7, &b"bcd"[..]));
        assert!(!packet.adjust_head(-4));
        assert!(!packet.adjust_head(i32::MIN));
        assert!(!packet.adjust_head(i32::MAX));
        assert_eq!(packet.truncate(9), 0);
        assert_eq!(packet.truncate(1), 2);
        assert_eq!(packet.bytes(), b"b");
        assert!(packet.adjust_head(-1) && packet.is_empty());
    }
}
