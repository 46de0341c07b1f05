//! IPv6 (RFC 8200 section 3).

use std::net::Ipv6Addr;

use crate::WireError;
use crate::bytes::{array_at, length_of, need, u16_at};

/// A view of an IPv6 packet.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |Version| Traffic Class |              Flow Label               |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |        Payload Length         |  Next Header  |   Hop Limit   |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                 Source Address, 16 bytes                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |               Destination Address, 16 bytes                   |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ipv6Packet<T>(T);

impl<T: AsRef<[u8]>> Ipv6Packet<T> {
    /// The length of the header.
    pub const HEADER: usize = 40;

    /// A view of `bytes`, if they hold the header. A truncated payload, as in captures, is not an
    /// error.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        let data = bytes.as_ref();
        need("IPv6", data, Self::HEADER)?;
        let version = data[0] >> 4;
        if version != 6 {
            return Err(WireError::Version { header: "IPv6", version });
        }
        Ok(Self(bytes))
    }

    #[inline]
    fn traffic_class(&self) -> u8 {
        // The traffic class straddles a byte boundary.
        (u16_at(self.0.as_ref(), 0) >> 4) as u8
    }

    /// The differentiated services code point (RFC 2474 section 3).
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// The ECN bits (RFC 3168 section 5).
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// The flow label (RFC 6437).
    #[inline]
    pub fn flow_label(&self) -> u32 {
        let word = u32::from_be_bytes(array_at(self.0.as_ref(), 0));
        word & 0x000f_ffff
    }

    /// The length of the payload.
    #[inline]
    pub fn payload_len(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }

    /// The Next Header field.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.0.as_ref()[6]
    }

    /// The remaining hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.0.as_ref()[7]
    }

    /// The source address.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        array_at::<16>(self.0.as_ref(), 8).into()
    }

    /// The destination address; with a segment list, the active segment.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        array_at::<16>(self.0.as_ref(), 24).into()
    }

    /// The payload, including extension headers but without link padding, as far as it was
    /// captured.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let data = self.0.as_ref();
        &data[Self::HEADER..(Self::HEADER + usize::from(self.payload_len())).min(data.len())]
    }
}

/// An IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6 {
    /// The differentiated services code point, 0 to 63.
    pub dscp: u8,
    /// The ECN bits, 0 to 3.
    pub ecn: u8,
    /// The flow label; 20 bits.
    pub flow_label: u32,
    /// The length of the payload.
    pub payload_len: u16,
    /// The Next Header field.
    pub next_header: u8,
    /// The remaining hop limit.
    pub hop_limit: u8,
    /// The source address.
    pub src: Ipv6Addr,
    /// The destination address; with a segment list, the active segment.
    pub dst: Ipv6Addr,
}

impl Ipv6 {
    /// A header with traffic class 0, flow label 0 and hop limit 64, for an empty payload.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8) -> Self {
        let (dscp, ecn, flow_label, payload_len, hop_limit) = (0, 0, 0, 0, 64);
        Self { dscp, ecn, flow_label, payload_len, next_header, hop_limit, src, dst }
    }

    /// A packet with this header, its length filled in, and `payload`.
    pub fn around(self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        let payload_len = length_of("IPv6", payload)?;
        let mut out = Vec::new();
        Self { payload_len, ..self }.emit(&mut out);
        out.extend(payload);
        Ok(out)
    }

    /// The header of a packet.
    pub fn parse<T: AsRef<[u8]>>(packet: &Ipv6Packet<T>) -> Self {
        Self {
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            flow_label: packet.flow_label(),
            payload_len: packet.payload_len(),
            next_header: packet.next_header(),
            hop_limit: packet.hop_limit(),
            src: packet.src(),
            dst: packet.dst(),
        }
    }

    /// Appends the header to `out`. Values are truncated to their fields.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let class = u32::from(self.dscp & 0x3f) << 2 | u32::from(self.ecn & 3);
        out.extend((6 << 28 | class << 20 | self.flow_label & 0x000f_ffff).to_be_bytes());
        out.extend(self.payload_len.to_be_bytes());
        out.extend([self.next_header, self.hop_limit]);
        out.extend(self.src.octets());
        out.extend(self.dst.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_values() {
        let mut bytes = vec![0x6b, 0x91, 0x23, 0x45, 0x00, 0x03, 17, 64];
        bytes.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend("fd00::2".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend(b"abc\xee");
        let packet = Ipv6Packet::new_checked(&bytes).unwrap();
        assert_eq!(packet.payload(), b"abc");
        let value = Ipv6::parse(&packet);
        let expected = Ipv6 {
            dscp: 46,
            ecn: 1,
            flow_label: 0x12345,
            payload_len: 3,
            next_header: 17,
            hop_limit: 64,
            src: "fd00::1".parse().unwrap(),
            dst: "fd00::2".parse().unwrap(),
        };
        assert_eq!(value, expected);
        let mut out = Vec::new();
        value.emit(&mut out);
        assert_eq!(out, bytes[..40]);
        // A truncated capture.
        assert_eq!(Ipv6Packet::new_checked(&bytes[..41]).unwrap().payload(), b"a");
    }

    #[test]
    fn around_a_payload() {
        let [src, dst] = ["fd00::1", "fd00::2"].map(|text| text.parse().unwrap());
        let out = Ipv6 { hop_limit: 9, ..Ipv6::new(src, dst, 17) }.around(b"abc").unwrap();
        let packet = Ipv6Packet::new_checked(&out).unwrap();
        assert_eq!((packet.payload(), packet.src(), packet.dst()), (&b"abc"[..], src, dst));
        assert_eq!((out.len(), packet.next_header(), packet.hop_limit()), (43, 17, 9));
        assert!(Ipv6::new(src, dst, 17).around(&[0; 65_536]).is_err());
    }

    #[test]
    fn an_invalid_header_is_refused() {
        assert!(Ipv6Packet::new_checked([0x60; 39]).is_err());
        let error = WireError::Version { header: "IPv6", version: 4 };
        assert_eq!(Ipv6Packet::new_checked([0x45; 40]).unwrap_err(), error);
    }
}
