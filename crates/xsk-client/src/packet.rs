//! A packet in the client's memory.

use std::ptr::NonNull;

use sandbox_queue::Arena;
use xsk::Descriptor;

use crate::area::Area;

/// The packet continues in the next descriptor (XDP_PKT_CONTD).
const CONTINUED: u32 = 1;

/// Maximum number of descriptors of a packet. The kernel's packets have up to 18 (MAX_SKB_FRAGS + 1).
const MAX_PARTS: usize = 32;

/// Returns true if the packet continues in the next descriptor.
pub(crate) fn is_continued(descriptor: Descriptor) -> bool {
    descriptor.options & CONTINUED != 0
}

/// Descriptors of a packet, in order: most packets have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    first: Descriptor,
    rest: Vec<Descriptor>,
}

impl Packet {
    pub(crate) fn new(first: Descriptor) -> Self {
        Self { first, rest: Vec::new() }
    }

    /// Adds a descriptor. Returns false if there are too many.
    pub(crate) fn push(&mut self, next: Descriptor) -> bool {
        self.rest.push(next);
        self.count() <= MAX_PARTS
    }

    /// Number of descriptors.
    pub(crate) fn count(&self) -> usize {
        1 + self.rest.len()
    }

    /// The first descriptor, which has the headers.
    pub(crate) fn first(&self) -> Descriptor {
        self.first
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = Descriptor> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> u32 {
        self.parts().fold(0, |sum: u32, part| sum.saturating_add(part.length))
    }

    /// Memory of a packet of one descriptor, from its first byte on, and its size; `None` for others.
    pub(crate) fn place(&self, area: &Area) -> Option<(NonNull<u8>, usize)> {
        let Descriptor { address, length, options } = self.first;
        area.place(address, length).filter(|_| self.rest.is_empty() && options == 0)
    }

    /// Moves a packet of one descriptor, which lies `start` bytes behind its address and has a new
    /// length, to its address. Returns the number of its descriptors; `None` if it does not fit.
    pub(crate) fn settle(&mut self, area: &Area, start: usize, length: u32) -> Option<usize> {
        let Descriptor { address, length: before, .. } = self.first;
        let to = area.resized(address, before, length)?;
        if start > 0 {
            let (_, room) = self.place(area)?;
            let end = start.checked_add(length as usize)?;
            assert!(end <= room, "the program leaves the packet in its memory");
            // SAFETY: both ranges are in the chunk, which is this library's until the packet is
            // handed over; they may overlap.
            unsafe { std::ptr::copy(to.as_ptr().add(start), to.as_ptr(), length as usize) };
        }
        self.first.length = length;
        Some(1)
    }

    /// Copies the packet into a frame. Returns false if a descriptor does not lie in the memory, or has
    /// options other than XDP_PKT_CONTD. The packet has to fit the frame.
    pub(crate) fn copy_to(&self, area: &Area, arena: &Arena, slot: u32, start: u32) -> bool {
        let mut to = start;
        self.parts().all(|Descriptor { address, length, options }| {
            let part = area.packet(address, length).filter(|_| options & !CONTINUED == 0);
            let Some(part) = part else { return false };
            // SAFETY: the part lies in the client's memory, which the kernel and the client have
            // handed over with the descriptor.
            let bytes = unsafe { std::slice::from_raw_parts(part.as_ptr(), length as usize) };
            arena.write(slot, to, bytes);
            to += length;
            true
        })
    }

    /// Copies the packet back from a frame, with another length. Returns the number of descriptors
    /// that it then has, the first ones; `None` if it does not fit.
    pub(crate) fn copy_from(
        &mut self,
        area: &Area,
        arena: &Arena,
        slot: u32,
        start: u32,
        length: u32,
    ) -> Option<usize> {
        let (count, mut from, mut left) = (self.count(), start, length);
        let parts = std::iter::once(&mut self.first).chain(&mut self.rest);
        for (at, part) in (1..).zip(parts) {
            // Only the last descriptor grows.
            let taken = if at == count { left } else { left.min(part.length) };
            let to = area.resized(part.address, part.length, taken)?;
            // SAFETY: the chunk is this library's until the packet is handed over.
            let bytes = unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), taken as usize) };
            arena.read(slot, from, bytes);
            (part.length, from, left) = (taken, from + taken, left - taken);
            if left == 0 {
                part.options &= !CONTINUED;
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u32 = 256;

    fn packet(lengths: &[u32]) -> Packet {
        let part = |at: usize| Descriptor {
            address: 1024 * at as u64,
            length: lengths[at],
            options: u32::from(at + 1 < lengths.len()),
        };
        let mut packet = Packet::new(part(0));
        assert!((1..lengths.len()).all(|at| packet.push(part(at))));
        packet
    }

    /// Copies a packet into a frame and back with another length, and returns the lengths of its
    /// descriptors; `None` if it does not fit.
    fn resized(lengths: &[u32], length: u32) -> Option<Vec<u32>> {
        let mut memory: Vec<u8> = (0..8192).map(|at| (at % 251) as u8).collect();
        let area = Area::new(memory.as_mut_ptr(), 8192, 1024, false).unwrap();
        let arena = Arena::new(1, 8192).unwrap();
        let mut packet = packet(lengths);
        assert!(packet.copy_to(&area, &arena, 0, START));
        let sent: Vec<u8> = (0..length).map(|at| (at % 13) as u8).collect();
        arena.write(0, START, &sent);
        let count = packet.copy_from(&area, &arena, 0, START, length)?;
        let kept: Vec<_> = packet.parts().take(count).collect();
        let last = kept.len() - 1;
        assert!(kept.iter().enumerate().all(|(at, part)| is_continued(*part) == (at < last)));
        let bytes = kept.iter().flat_map(|part| {
            let start = part.address as usize;
            memory[start..start + part.length as usize].to_vec()
        });
        assert!(bytes.eq(sent));
        Some(kept.iter().map(|part| part.length).collect())
    }

    #[test]
    fn a_packet_of_several_descriptors_changes_its_length() {
        assert_eq!(resized(&[1024, 1024, 500], 2548), Some(vec![1024, 1024, 500]));
        assert_eq!(resized(&[1024, 1024, 500], 3072), Some(vec![1024, 1024, 1024]));
        assert_eq!(resized(&[1024, 1024, 500], 3073), None);
        assert_eq!(resized(&[1024, 1024, 500], 2048), Some(vec![1024, 1024]));
        assert_eq!(resized(&[1024, 1024, 500], 1), Some(vec![1]));
        assert_eq!(resized(&[60], 61), Some(vec![61]));
        assert_eq!(resized(&[60], 0), None);
    }

    #[test]
    fn a_packet_in_its_chunk_changes_its_start_and_length() {
        let mut memory: Vec<u8> = (0..2048).map(|at| (at % 251) as u8).collect();
        let area = Area::new(memory.as_mut_ptr(), 2048, 1024, false).unwrap();
        let descriptor = Descriptor { address: 1024 + 100, length: 60, options: 0 };
        let packet = Packet::new(descriptor);
        assert_eq!(packet.place(&area).unwrap().1, 924);
        for (start, length, is_kept) in [
            (0, 60, true),
            (0, 924, true),
            (14, 46, true),
            (1, 923, true),
            (0, 925, false),
            (60, 0, false),
        ] {
            let mut packet = packet.clone();
            let from = 1124 + start;
            let expected = memory[from..].iter().take(length as usize).copied().collect::<Vec<_>>();
            assert_eq!(packet.settle(&area, start, length), is_kept.then_some(1), "{length}");
            if is_kept {
                assert_eq!(packet.first(), Descriptor { length, ..descriptor });
                assert_eq!(memory[1124..1124 + length as usize], expected);
            }
        }
        // Packets of several descriptors are copied, and a chunk that may begin anywhere has no room.
        let mut parts = packet.clone();
        assert!(parts.push(descriptor) && parts.place(&area).is_none());
        let unaligned = Area::new(memory.as_mut_ptr(), 2048, 1024, true).unwrap();
        assert_eq!(packet.place(&unaligned).unwrap().1, 60);
    }

    #[test]
    fn other_memory_and_options_are_refused() {
        let mut memory = [0_u8; 4096];
        let area = Area::new(memory.as_mut_ptr(), 4096, 1024, false).unwrap();
        let arena = Arena::new(1, 8192).unwrap();
        let fits = |packet: &Packet| packet.copy_to(&area, &arena, 0, START);
        assert!(fits(&packet(&[1024; 4])) && !fits(&packet(&[1024; 5])));
        // XDP_TX_METADATA.
        assert!(!fits(&Packet::new(Descriptor { address: 0, length: 60, options: 2 })));
        let mut long = Packet::default();
        assert!((1..MAX_PARTS).all(|_| long.push(Descriptor::default())));
        assert!(!long.push(Descriptor::default()));
    }
}
