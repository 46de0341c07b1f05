//! A packet in its caller's memory.

use std::marker::PhantomData;
use std::ptr::NonNull;

/// The most bytes of memory around a packet.
pub(crate) const MAX_MEMORY: usize = 1 << 24;

/// A packet in its caller's memory, a frame of a UMEM for instance: bytes before it are headroom, bytes
/// behind it tailroom.
#[derive(Debug)]
pub struct PacketBuffer<'m> {
    pub(crate) memory: NonNull<u8>,
    pub(crate) size: u32,
    pub(crate) start: u32,
    pub(crate) length: u32,
    /// Whether its bytes are no longer where they were.
    pub(crate) has_moved: bool,
    of: PhantomData<&'m mut [u8]>,
}

impl<'m> PacketBuffer<'m> {
    /// The packet of `length` bytes that begins at `start` of `memory`. None if it does not lie in it,
    /// or `memory` has more than 16 MiB.
    pub fn new(memory: &'m mut [u8], start: usize, length: usize) -> Option<Self> {
        // SAFETY: the slice is ours alone for 'm, and all of it may be read and written.
        unsafe { Self::from_raw(NonNull::from_mut(memory).cast(), memory.len(), start, length) }
    }

    /// The same, of memory that others may write while a program runs on it.
    ///
    /// # Safety
    ///
    /// `memory` can be read and written for `size` bytes, as long as the buffer lives, and nothing in
    /// this process has a reference to them.
    pub unsafe fn from_raw(
        memory: NonNull<u8>,
        size: usize,
        start: usize,
        length: usize,
    ) -> Option<Self> {
        let fits = size <= MAX_MEMORY && start.checked_add(length)? <= size;
        // No cast cuts: all is at most 2^24.
        fits.then_some(Self {
            memory,
            size: size as u32,
            start: start as u32,
            length: length as u32,
            has_moved: false,
            of: PhantomData,
        })
    }

    /// A copy of the packet's bytes: others may write where they are.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        // SAFETY: start + length <= size, the memory is there as long as the buffer, and the copy is no
        // part of it.
        unsafe { self.data().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }

    /// Where in its memory the packet begins.
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// The packet's length in bytes.
    pub fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn data(&self) -> *mut u8 {
        // SAFETY: start <= size.
        unsafe { self.memory.as_ptr().add(self.start as usize) }
    }

    /// Puts `by` zeros in front of the packet, or takes `-by` bytes off. Where there is no headroom but
    /// tailroom, the packet's bytes are moved. False if there is neither, or there are too few bytes.
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
            // As little as is needed: the headroom that is there is used as well.
            let from = self.data();
            self.start = 0;
            self.has_moved = true;
            // SAFETY: `more` + length <= size, both places are in the memory; they may overlap.
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

    /// Cuts the packet to `length` bytes, and says how many that are less.
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
