//! The segment routing header (RFC 8754 section 2).

use std::net::Ipv6Addr;

use crate::WireError;
use crate::bytes::{array_at, need, u16_at};

/// A view of a segment routing header (SRH) and its payload.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  Next Header  |  Hdr Ext Len  | Routing Type  | Segments Left |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  Last Entry   |     Flags     |              Tag              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          Segment List[0], 16 bytes: the last to be visited    |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                              ...                              |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          Segment List[n], 16 bytes: the first                 |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  TLVs
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SrhPacket<T>(T);

/// The length of the fixed part before the segment list.
const FIXED: usize = 8;
/// The routing type of the SRH.
const ROUTING_TYPE: u8 = 4;

impl<T: AsRef<[u8]>> SrhPacket<T> {
    /// A view of `bytes`, if they hold a whole SRH. A reduced list has its first segment only in
    /// the IPv6 header, so Segments Left may be one more than the last index (RFC 8754 section
    /// 4.1.1).
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        let data = bytes.as_ref();
        need("SRH", data, FIXED)?;
        if data[2] != ROUTING_TYPE {
            return Err(WireError::RoutingType(data[2]));
        }
        let packet = Self(bytes);
        let length = packet.header_len();
        need("SRH", packet.0.as_ref(), length)?;
        let segments = packet.segment_count();
        if FIXED + 16 * segments > length {
            return Err(WireError::Length { header: "SRH", length });
        }
        let left = packet.segments_left();
        if usize::from(left) > segments {
            return Err(WireError::SegmentsLeft { left, segments });
        }
        Ok(packet)
    }

    /// The length of the header, including TLVs.
    pub fn header_len(&self) -> usize {
        FIXED + 8 * usize::from(self.0.as_ref()[1])
    }

    /// The protocol of the payload.
    pub fn next_header(&self) -> u8 {
        self.0.as_ref()[0]
    }

    /// The index of the active segment.
    pub fn segments_left(&self) -> u8 {
        self.0.as_ref()[3]
    }

    /// The index of the list's last entry, which is visited first.
    pub fn last_entry(&self) -> u8 {
        self.0.as_ref()[4]
    }

    /// The flags; none is defined.
    pub fn flags(&self) -> u8 {
        self.0.as_ref()[5]
    }

    /// The tag, which marks a class of packets.
    pub fn tag(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }

    fn segment_count(&self) -> usize {
        usize::from(self.last_entry()) + 1
    }

    /// The segments in wire order: the last to visit comes first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Ipv6Addr> {
        let data = self.0.as_ref();
        (0..self.segment_count()).map(|index| array_at::<16>(data, FIXED + 16 * index).into())
    }

    /// The bytes between the list and the end of the header (RFC 8754 section 2.1).
    pub fn tlvs(&self) -> &[u8] {
        &self.0.as_ref()[FIXED + 16 * self.segment_count()..self.header_len()]
    }

    /// The bytes after the header.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..]
    }
}

/// A segment routing header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Srh {
    /// The protocol of the payload.
    pub next_header: u8,
    /// The index of the active segment. In a reduced list, it equals the length of the list until
    /// the first segment is reached.
    pub segments_left: u8,
    /// The flags; none is defined.
    pub flags: u8,
    /// The tag, which marks a class of packets.
    pub tag: u16,
    /// The segments in wire order: the last to visit comes first. At least one.
    pub segments: Vec<Ipv6Addr>,
    /// The raw TLVs; a multiple of 8 bytes.
    pub tlvs: Vec<u8>,
}

impl Srh {
    /// A header for a packet on its way to the first segment of `path`, which is in the order of
    /// visits.
    pub fn of_path(next_header: u8, path: &[Ipv6Addr]) -> Self {
        Self {
            next_header,
            // `emit` rejects a path that is too long.
            segments_left: path.len().saturating_sub(1).min(255) as u8,
            flags: 0,
            tag: 0,
            segments: path.iter().rev().copied().collect(),
            tlvs: Vec::new(),
        }
    }

    /// The header followed by `payload`.
    pub fn around(&self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        out.extend(payload);
        Ok(out)
    }

    /// The header of a packet.
    pub fn parse<T: AsRef<[u8]>>(packet: &SrhPacket<T>) -> Self {
        Self {
            next_header: packet.next_header(),
            segments_left: packet.segments_left(),
            flags: packet.flags(),
            tag: packet.tag(),
            segments: packet.segments().collect(),
            tlvs: packet.tlvs().to_vec(),
        }
    }

    /// The segments in the order of visits.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = Ipv6Addr> {
        self.segments.iter().rev().copied()
    }

    /// The length of the header, including TLVs.
    pub fn header_len(&self) -> usize {
        FIXED + 16 * self.segments.len() + self.tlvs.len()
    }

    /// Appends the header to `out`. Fails if the list is empty or too long.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let length = self.header_len();
        let bad = WireError::Length { header: "SRH", length };
        let units = u8::try_from((length - FIXED) / 8).map_err(|_| bad)?;
        // 127 segments fill the length field, so the index of the last one fits.
        let last_entry = self.segments.len().checked_sub(1).ok_or(bad)? as u8;
        if !self.tlvs.len().is_multiple_of(8) {
            return Err(bad);
        }
        if usize::from(self.segments_left) > self.segments.len() {
            let (left, segments) = (self.segments_left, self.segments.len());
            return Err(WireError::SegmentsLeft { left, segments });
        }
        out.extend([self.next_header, units, ROUTING_TYPE, self.segments_left]);
        out.extend([last_entry, self.flags]);
        out.extend(self.tag.to_be_bytes());
        for segment in &self.segments {
            out.extend(segment.octets());
        }
        out.extend(&self.tlvs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<Ipv6Addr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn bytes_and_values() {
        let path = addresses(&["fd00:0:2:1::", "fd00:0:5:d6::"]);
        let mut srh = Srh::of_path(41, &path);
        (srh.flags, srh.tag) = (0x80, 0x1234);
        // A PadN TLV (RFC 8754 section 2.1.1.2) that fills 8 bytes.
        srh.tlvs = vec![4, 6, 0, 0, 0, 0, 0, 0];
        let mut out = Vec::new();
        srh.emit(&mut out).unwrap();
        assert_eq!(out.len(), srh.header_len());
        assert_eq!(out[..8], [41, 5, 4, 1, 1, 0x80, 0x12, 0x34]);
        // The last segment comes first.
        assert_eq!(out[8..24], path[1].octets());
        assert_eq!(out[24..40], path[0].octets());
        out.push(0xee);
        let packet = SrhPacket::new_checked(&out).unwrap();
        assert_eq!(packet.payload(), [0xee]);
        assert_eq!(Srh::parse(&packet), srh);
        assert_eq!(srh.path().collect::<Vec<_>>(), path);
    }

    #[test]
    fn a_reduced_list_lacks_its_first_segment() {
        let mut srh = Srh::of_path(4, &addresses(&["fd00:0:5:d4::"]));
        srh.segments_left = 1;
        let mut out = Vec::new();
        srh.emit(&mut out).unwrap();
        assert_eq!(Srh::parse(&SrhPacket::new_checked(&out).unwrap()), srh);
        out[3] = 2;
        let error = WireError::SegmentsLeft { left: 2, segments: 1 };
        assert_eq!(SrhPacket::new_checked(&out).unwrap_err(), error);
        srh.segments_left = 2;
        assert_eq!(srh.emit(&mut vec![]), Err(error));
    }

    #[test]
    fn an_invalid_srh_is_refused() {
        let mut out = Vec::new();
        Srh::of_path(4, &addresses(&["fd00::1", "fd00::2"])).emit(&mut out).unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = out.clone();
            bytes[at] = byte;
            SrhPacket::new_checked(bytes).map(|_| ())
        };
        assert_eq!(with(2, 2), Err(WireError::RoutingType(2)));
        assert_eq!(with(1, 3), Err(WireError::Length { header: "SRH", length: 32 }));
        assert_eq!(with(4, 2), Err(WireError::Length { header: "SRH", length: 40 }));
        assert!(matches!(with(1, 5), Err(WireError::Truncated { need: 48, have: 40, .. })));
        assert!(SrhPacket::new_checked(&out[..7]).is_err());
        assert!(Srh::of_path(4, &[]).emit(&mut vec![]).is_err());
        assert!(Srh::of_path(4, &[Ipv6Addr::LOCALHOST; 128]).emit(&mut vec![]).is_err());
        assert!(Srh::of_path(4, &[Ipv6Addr::LOCALHOST; 127]).emit(&mut vec![]).is_ok());
        let odd = Srh { tlvs: vec![0; 3], ..Srh::of_path(4, &[Ipv6Addr::LOCALHOST]) };
        assert!(odd.emit(&mut vec![]).is_err());
    }
}
