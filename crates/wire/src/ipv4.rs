//! IPv4 (RFC 791 section 3.1).

use std::net::Ipv4Addr;

use crate::bytes::{array_at, length_of, need, u16_at};
use crate::{Checksum, WireError};

/// A view of an IPv4 packet.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |Version|  IHL  |   DSCP    |ECN|         Total Length          |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        Identification         |Flags|     Fragment Offset     |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  Time to Live |   Protocol    |        Header Checksum        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Source Address                         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                      Destination Address                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  options, up to 40 bytes
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ipv4Packet<T>(T);

/// The length of a header without options.
const FIXED: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

impl<T: AsRef<[u8]>> Ipv4Packet<T> {
    /// A view of `bytes`, if they hold the header, including options. A truncated payload, as in
    /// captures, is not an error.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        let data = bytes.as_ref();
        need("IPv4", data, FIXED)?;
        let version = data[0] >> 4;
        if version != 4 {
            return Err(WireError::Version { header: "IPv4", version });
        }
        let packet = Self(bytes);
        let length = packet.header_len();
        if length < FIXED {
            return Err(WireError::Length { header: "IPv4", length });
        }
        need("IPv4", packet.0.as_ref(), length)?;
        let total = usize::from(packet.total_len());
        if total < length {
            return Err(WireError::Length { header: "IPv4", length: total });
        }
        Ok(packet)
    }

    /// The length of the header, including options.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.0.as_ref()[0] & 0x0f) * 4
    }

    /// The length of the packet, including the header.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }

    /// The differentiated services code point (RFC 2474 section 3).
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.0.as_ref()[1] >> 2
    }

    /// The ECN bits (RFC 3168 section 5).
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.0.as_ref()[1] & 3
    }

    /// The identification, which all fragments of a packet share.
    #[inline]
    pub fn identification(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }

    /// Returns true if routers must not fragment the packet.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        u16_at(self.0.as_ref(), 6) & DONT_FRAGMENT != 0
    }

    /// Returns true if more fragments follow.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        u16_at(self.0.as_ref(), 6) & MORE_FRAGMENTS != 0
    }

    /// The fragment offset, in units of 8 bytes.
    #[inline]
    pub fn fragment_offset(&self) -> u16 {
        u16_at(self.0.as_ref(), 6) & 0x1fff
    }

    /// The remaining time to live, in hops.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.0.as_ref()[8]
    }

    /// The protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.0.as_ref()[9]
    }

    /// Returns true if the header checksum is valid.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        Checksum::default().with(&self.0.as_ref()[..self.header_len()]).finish() == 0
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        array_at::<4>(self.0.as_ref(), 12).into()
    }

    /// The destination address.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        array_at::<4>(self.0.as_ref(), 16).into()
    }

    /// The options.
    #[inline]
    pub fn options(&self) -> &[u8] {
        &self.0.as_ref()[FIXED..self.header_len()]
    }

    /// The payload without link padding, as far as it was captured.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let data = self.0.as_ref();
        &data[self.header_len()..usize::from(self.total_len()).min(data.len())]
    }
}

/// An IPv4 header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipv4 {
    /// The differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// The ECN bits, 0 to 3.
    pub ecn: u8,
    /// The identification, which all fragments of a packet share.
    pub identification: u16,
    /// True if routers must not fragment the packet.
    pub dont_fragment: bool,
    /// True if more fragments follow.
    pub more_fragments: bool,
    /// The fragment offset, in units of 8 bytes.
    pub fragment_offset: u16,
    /// The remaining time to live, in hops.
    pub ttl: u8,
    /// The protocol of the payload.
    pub protocol: u8,
    /// The source address.
    pub src: Ipv4Addr,
    /// The destination address.
    pub dst: Ipv4Addr,
    /// The options; a multiple of 4 bytes, at most 40.
    pub options: Vec<u8>,
    /// The length of the payload.
    pub payload_len: u16,
}

impl Ipv4 {
    /// A header without options, with TTL 64 and the Don't Fragment bit, for an empty payload.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8) -> Self {
        Self {
            dscp: 0,
            ecn: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            src,
            dst,
            options: Vec::new(),
            payload_len: 0,
        }
    }

    /// A packet with this header, its length filled in, and `payload`.
    pub fn around(self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        let payload_len = length_of("IPv4", payload)?;
        let mut out = Vec::new();
        Self { payload_len, ..self }.emit(&mut out)?;
        out.extend(payload);
        Ok(out)
    }

    /// The header of a packet. The checksum is not verified, because checksum offload leaves it
    /// incomplete.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv4Packet<T>) -> Self {
        Self {
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            more_fragments: packet.more_fragments(),
            fragment_offset: packet.fragment_offset(),
            ttl: packet.ttl(),
            protocol: packet.protocol(),
            src: packet.src(),
            dst: packet.dst(),
            options: packet.options().to_vec(),
            // A header is at most 60 bytes, and the view checked that the total covers it.
            payload_len: packet.total_len() - packet.header_len() as u16,
        }
    }

    /// Appends the header to `out`, with its checksum. Values are truncated to their fields. Fails
    /// if a length does not fit.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let options = self.options.len();
        if !options.is_multiple_of(4) || options > 40 {
            return Err(WireError::Length { header: "IPv4", length: options });
        }
        let header = FIXED + options;
        let total = header + usize::from(self.payload_len);
        let total = u16::try_from(total)
            .map_err(|_| WireError::Length { header: "IPv4", length: total })?;
        let start = out.len();
        // At most 60 / 4 = 15.
        out.push(0x40 | (header / 4) as u8);
        out.push(self.dscp << 2 | self.ecn & 3);
        out.extend(total.to_be_bytes());
        out.extend(self.identification.to_be_bytes());
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 }
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        out.extend((flags | self.fragment_offset & 0x1fff).to_be_bytes());
        out.extend([self.ttl, self.protocol, 0, 0]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
        out.extend(&self.options);
        let sum = Checksum::default().with(&out[start..]).finish();
        out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 29] = [
        0x46, 0xb9, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x3c, 0x82, 10, 0, 0, 1, 10, 0,
        0, 2, 1, 1, 1, 0, b'a', b'b', b'c', b'd', 0xee,
    ];

    #[test]
    fn bytes_and_values() {
        let packet = Ipv4Packet::new_checked(&BYTES).unwrap();
        // The byte after the total length is link padding.
        assert_eq!(packet.payload(), b"abcd");
        let value = Ipv4::parse(&packet);
        let expected = Ipv4 {
            dscp: 46,
            ecn: 1,
            identification: 0x1234,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: 17,
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            options: vec![1, 1, 1, 0],
            payload_len: 4,
        };
        assert_eq!(value, expected);
        let mut out = vec![0xaa];
        value.emit(&mut out).unwrap();
        assert_eq!(out[1..11], BYTES[..10]);
        assert_eq!(out[13..], BYTES[12..24]);
        assert!(Ipv4Packet::new_checked(&out[1..]).unwrap().checksum_ok());
        out[9] ^= 1;
        assert!(!Ipv4Packet::new_checked(&out[1..]).unwrap().checksum_ok());
    }

    #[test]
    fn around_a_payload() {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Ipv4Addr::from);
        let out = Ipv4 { ttl: 9, ..Ipv4::new(src, dst, 17) }.around(b"abc").unwrap();
        let packet = Ipv4Packet::new_checked(&out).unwrap();
        assert!(packet.checksum_ok() && packet.dont_fragment());
        assert_eq!((packet.payload(), packet.src(), packet.dst()), (&b"abc"[..], src, dst));
        assert_eq!((out.len(), packet.protocol(), packet.ttl()), (23, 17, 9));
        assert!(Ipv4::new(src, dst, 17).around(&[0; 65_520]).is_err());
    }

    #[test]
    fn an_invalid_header_is_refused() {
        let with = |at: usize, byte: u8| {
            let mut bytes = BYTES;
            bytes[at] = byte;
            Ipv4Packet::new_checked(bytes).map(|_| ())
        };
        assert_eq!(with(0, 0x66), Err(WireError::Version { header: "IPv4", version: 6 }));
        assert_eq!(with(0, 0x44), Err(WireError::Length { header: "IPv4", length: 16 }));
        assert_eq!(with(3, 23), Err(WireError::Length { header: "IPv4", length: 23 }));
        assert!(Ipv4Packet::new_checked(&BYTES[..23]).is_err());
        // A truncated capture.
        assert_eq!(Ipv4Packet::new_checked(&BYTES[..26]).unwrap().payload(), b"ab");
        let value = Ipv4::parse(&Ipv4Packet::new_checked(&BYTES).unwrap());
        let odd = Ipv4 { options: vec![0; 3], ..value.clone() };
        assert!(odd.emit(&mut vec![]).is_err());
        let large = Ipv4 { payload_len: u16::MAX, ..value };
        assert!(large.emit(&mut vec![]).is_err());
    }
}
