//! Packets as a network card of this machine has them: perhaps many segments in one, and with a
//! checksum that is still to be made.

mod buffer;
mod ecn;
mod headers;
mod run;
mod segments;

use wire::{Checksum, ETHERNET};

use crate::Frame;
use buffer::Buffer;
use headers::Layout;

pub use run::Run;

/// A checksum that is still to be made: the bytes from `start` on are summed up, and the complement
/// goes to `start + offset`, where the pseudo-header's sum is already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Where the transport header begins, in bytes of the frame.
    pub start: u16,
    /// Where its checksum is, from there.
    pub offset: u16,
}

/// How a packet that is many is to be cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4 or IPv6, each piece a datagram.
    Udp,
}

/// Many packets in one, which differ in no more than their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// How.
    pub cut: Cut,
    /// The bytes of payload in each but the last.
    pub size: u16,
}

/// An Ethernet frame, without its check sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Buffer,
    unfinished: Option<Unfinished>,
    segments: Option<Segments>,
    /// On the wire, with the headers of every segment.
    length: u32,
    /// Behind the Ethernet header, of the largest of its segments.
    largest: u32,
    /// Whether it is cross traffic.
    is_cross: bool,
    /// How many packets it is to whoever counts them.
    count: u32,
}

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPacket {
    /// Shorter than an Ethernet header.
    Short,
    /// What is said of its checksum or its segments does not fit its headers.
    Contradiction,
}

impl Packet {
    /// A frame as it is on the wire.
    pub fn new(bytes: &[u8]) -> Result<Self, BadPacket> {
        Self::offloaded(bytes, None, None)
    }

    /// A frame with what is still to be done to it.
    pub fn offloaded(
        bytes: &[u8],
        unfinished: Option<Unfinished>,
        segments: Option<Segments>,
    ) -> Result<Self, BadPacket> {
        if bytes.len() < ETHERNET {
            return Err(BadPacket::Short);
        }
        if let Some(Unfinished { start, offset }) = unfinished
            && usize::from(start) + usize::from(offset) + 2 > bytes.len()
        {
            return Err(BadPacket::Contradiction);
        }
        let mut length = bytes.len() as u32;
        let (mut largest, mut count) = (bytes.len() - ETHERNET, 1);
        if let Some(segments) = segments {
            let layout = Layout::of(bytes, segments).ok_or(BadPacket::Contradiction)?;
            // Each segment has its checksum there: elsewhere may be behind its end.
            let is_there = |sum: Unfinished| {
                usize::from(sum.start) == layout.transport && sum.offset == layout.kind.checksum()
            };
            if !unfinished.is_some_and(is_there) {
                return Err(BadPacket::Contradiction);
            }
            let more = layout.count().saturating_sub(1) * layout.headers();
            length += more as u32;
            largest = largest.min(layout.largest() - ETHERNET);
            if segments.cut == Cut::Udp {
                count = layout.count() as u32;
            }
        }
        let (bytes, largest) = (Buffer::of(bytes), largest as u32);
        Ok(Self { bytes, unfinished, segments, length, largest, is_cross: false, count })
    }

    /// The frame's bytes; of many segments the headers once.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be changed without changing its length or where its headers are.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Makes it one of cross traffic's.
    pub(crate) fn make_cross(&mut self) {
        self.is_cross = true;
    }

    /// Bytes of its headers, if it is more than one.
    pub fn header_length(&self) -> u16 {
        let layout = self.segments.and_then(|segments| Layout::of(&self.bytes, segments));
        layout.map_or(0, |layout| layout.headers() as u16)
    }

    /// The bytes behind the Ethernet header, of the largest of its segments.
    pub(crate) fn network_length(&self) -> usize {
        self.largest as usize
    }

    /// The checksum that is still to be made.
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    /// How it is to be cut up, if it is more than one.
    pub fn segments(&self) -> Option<Segments> {
        self.segments
    }

    /// Makes the checksum. Of many segments none can be made.
    pub fn finish(&mut self) {
        if self.segments.is_some() {
            return;
        }
        let Some(Unfinished { start, offset }) = self.unfinished.take() else { return };
        let (start, at) = (usize::from(start), usize::from(start) + usize::from(offset));
        let sum = match Checksum::default().with(&self.bytes[start..]).finish() {
            // To UDP 0 says that there is none (RFC 768), and to others it is the same.
            0 => 0xffff,
            sum => sum,
        };
        self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// How many packets it is to whoever counts them. Datagrams are made one on their way, by a [`Run`] or by
    /// another host's kernel, but are still many; TCP's segments are as many as the sender's host says, and
    /// there they are one.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The packets that it is, in order: itself, if it is one.
    pub fn split(self, each: impl FnMut(Self)) {
        segments::split(self, each);
    }
}

impl Frame for Packet {
    fn mark(&mut self) -> bool {
        ecn::mark(&mut self.bytes)
    }

    fn length(&self) -> u32 {
        self.length
    }

    fn count(&self) -> u64 {
        self.count.into()
    }

    fn is_cross(&self) -> bool {
        self.is_cross
    }

    /// Behind the Ethernet header: what is wrong there, cards drop.
    fn flip(&mut self, bit: u64) {
        self.finish();
        let bits = (self.bytes.len() - ETHERNET) as u64 * 8;
        if let Some(bit) = bit.checked_rem(bits) {
            self.bytes[ETHERNET + (bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
