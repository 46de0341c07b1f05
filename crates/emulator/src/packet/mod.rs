//! Packets as this machine's network devices hand them over: possibly with segmentation offload
//! (GSO) and checksum offload pending.

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

/// Pending checksum offload: the device sums the bytes from `start` on and writes the complement to
/// `start + offset`, which already holds the sum of the pseudo-header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Offset of the transport header in the frame.
    pub start: u16,
    /// Offset of the checksum from `start`.
    pub offset: u16,
}

/// Segmentation type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4 or IPv6; each segment is a datagram.
    Udp,
}

/// Pending segmentation offload: one frame that represents several packets with the same headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// Segmentation type.
    pub cut: Cut,
    /// Payload bytes of each segment but the last.
    pub size: u16,
}

/// An Ethernet frame without its frame check sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    bytes: Buffer,
    unfinished: Option<Unfinished>,
    segments: Option<Segments>,
    /// Length on the wire, with the headers of every segment.
    length: u32,
    /// Length of the largest segment, without the Ethernet header.
    largest: u32,
    /// True for cross traffic.
    is_cross: bool,
    /// Number of packets for counters.
    count: u32,
}

/// Maximum number of segments of a frame. With the smallest MSS that Linux sends (48 bytes), 64 KiB
/// have 1,366.
const MAX_SEGMENTS: usize = 1500;

/// Error in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPacket {
    /// The frame is shorter than an Ethernet header.
    Short,
    /// The offload metadata does not match the headers.
    Contradiction,
    /// The frame has more than [`MAX_SEGMENTS`] segments.
    Segments,
}

impl Packet {
    /// Creates a frame without pending offloads.
    pub fn new(bytes: &[u8]) -> Result<Self, BadPacket> {
        Self::offloaded(bytes, None, None)
    }

    /// Creates a frame with pending offloads.
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
            let layout = Layout::parse(bytes, segments).ok_or(BadPacket::Contradiction)?;
            // Each segment has its checksum at this offset; another offset may lie beyond a
            // segment's end.
            let is_there = |sum: Unfinished| {
                usize::from(sum.start) == layout.transport && sum.offset == layout.kind.checksum()
            };
            if layout.count() > MAX_SEGMENTS {
                return Err(BadPacket::Segments);
            }
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
        let (bytes, largest) = (Buffer::copy_from(bytes), largest as u32);
        Ok(Self { bytes, unfinished, segments, length, largest, is_cross: false, count })
    }

    /// Returns the frame's bytes. A segmented frame contains the headers once.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the frame's bytes for modification. The caller must not move the headers.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Marks the packet as cross traffic.
    pub(crate) fn make_cross(&mut self) {
        self.is_cross = true;
    }

    /// Returns the length of the headers, or 0 for a packet without segmentation offload.
    pub fn header_length(&self) -> u16 {
        let layout = self.segments.and_then(|segments| Layout::parse(&self.bytes, segments));
        layout.map_or(0, |layout| layout.headers() as u16)
    }

    /// Returns the length of the largest segment, without the Ethernet header.
    pub(crate) fn network_length(&self) -> usize {
        self.largest as usize
    }

    /// Returns the pending checksum offload.
    pub fn unfinished(&self) -> Option<Unfinished> {
        self.unfinished
    }

    /// Returns the pending segmentation offload.
    pub fn segments(&self) -> Option<Segments> {
        self.segments
    }

    /// Computes the pending checksum. Has no effect on a frame that is yet to be segmented.
    pub fn finish(&mut self) {
        if self.segments.is_some() {
            return;
        }
        let Some(Unfinished { start, offset }) = self.unfinished.take() else { return };
        let (start, at) = (usize::from(start), usize::from(start) + usize::from(offset));
        let sum = match Checksum::default().with(&self.bytes[start..]).finish() {
            // In UDP, 0 means that there is no checksum (RFC 768). For other protocols the two are
            // equal.
            0 => 0xffff,
            sum => sum,
        };
        self.bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Returns the number of packets for counters. UDP datagrams are merged on the path, by a
    /// [`Run`] or by another host's kernel, and count separately. TCP segments count as one packet,
    /// as on the sending host.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Splits the packet into its segments, in order. Yields the packet itself if there is only
    /// one.
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

    /// Inverts a bit after the Ethernet header, because network cards drop frames with errors in
    /// it.
    fn flip(&mut self, bit: u64) {
        self.finish();
        let bits = (self.bytes.len() - ETHERNET) as u64 * 8;
        if let Some(bit) = bit.checked_rem(bits) {
            self.bytes[ETHERNET + (bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}
