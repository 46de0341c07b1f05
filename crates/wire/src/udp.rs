//! UDP (RFC 768).

use crate::WireError;
use crate::bytes::{length_of, need, u16_at};

/// A view of a UDP datagram.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          Source Port          |       Destination Port        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |            Length             |           Checksum            |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
#[derive(Debug, Clone, Copy)]
pub struct UdpPacket<T>(T);

impl<T: AsRef<[u8]>> UdpPacket<T> {
    /// The header's length.
    pub const HEADER: usize = 8;

    /// A view of `bytes`, if they hold the header. A truncated payload, as in captures, is not an
    /// error.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        need("UDP", bytes.as_ref(), Self::HEADER)?;
        let packet = Self(bytes);
        let length = usize::from(packet.length());
        if length < Self::HEADER {
            return Err(WireError::Length { header: "UDP", length });
        }
        Ok(packet)
    }

    /// The source port.
    #[inline]
    pub fn src_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 0)
    }

    /// The destination port.
    #[inline]
    pub fn dst_port(&self) -> u16 {
        u16_at(self.0.as_ref(), 2)
    }

    /// The length of the datagram, including the header.
    #[inline]
    pub fn length(&self) -> u16 {
        u16_at(self.0.as_ref(), 4)
    }

    /// The checksum; 0 if an IPv4 sender computed none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.0.as_ref(), 6)
    }

    /// The payload, as far as it was captured.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let data = self.0.as_ref();
        &data[Self::HEADER..usize::from(self.length()).min(data.len())]
    }
}

/// A UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp {
    /// The source port.
    pub src_port: u16,
    /// The destination port.
    pub dst_port: u16,
    /// The length of the payload.
    pub payload_len: u16,
    /// The checksum; see [`transport_checksum`](crate::transport_checksum).
    pub checksum: u16,
}

impl Udp {
    /// A header without a checksum, for an empty payload.
    pub fn new(src_port: u16, dst_port: u16) -> Self {
        Self { src_port, dst_port, payload_len: 0, checksum: 0 }
    }

    /// A datagram with this header, its length filled in, and `payload`.
    pub fn around(self, payload: &[u8]) -> Result<Vec<u8>, WireError> {
        let payload_len = length_of("UDP", payload)?;
        let mut out = Vec::new();
        Self { payload_len, ..self }.emit(&mut out)?;
        out.extend(payload);
        Ok(out)
    }

    /// The header of a datagram.
    pub fn parse<T: AsRef<[u8]>>(packet: &UdpPacket<T>) -> Self {
        Self {
            src_port: packet.src_port(),
            dst_port: packet.dst_port(),
            // The view checked that the length covers the header.
            payload_len: packet.length() - UdpPacket::<T>::HEADER as u16,
            checksum: packet.checksum(),
        }
    }

    /// Appends the header to `out`. Fails if the payload is too long.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let length = usize::from(self.payload_len) + UdpPacket::<&[u8]>::HEADER;
        let length =
            u16::try_from(length).map_err(|_| WireError::Length { header: "UDP", length })?;
        for field in [self.src_port, self.dst_port, length, self.checksum] {
            out.extend(field.to_be_bytes());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_values() {
        let bytes = [0x03, 0xe8, 0x14, 0x51, 0x00, 0x0a, 0xbe, 0xef, b'h', b'i', 0xee];
        let packet = UdpPacket::new_checked(&bytes).unwrap();
        assert_eq!(packet.payload(), b"hi");
        let value = Udp::parse(&packet);
        let expected = Udp { src_port: 1000, dst_port: 5201, payload_len: 2, checksum: 0xbeef };
        assert_eq!(value, expected);
        let mut out = Vec::new();
        value.emit(&mut out).unwrap();
        assert_eq!(out, bytes[..8]);
        let out = Udp::new(1000, 5201).around(b"hi").unwrap();
        assert_eq!((&out[..6], &out[6..]), (&bytes[..6], &b"\0\0hi"[..]));
    }

    #[test]
    fn an_invalid_header_is_refused() {
        assert!(UdpPacket::new_checked([0; 7]).is_err());
        let error = WireError::Length { header: "UDP", length: 7 };
        assert_eq!(UdpPacket::new_checked([0, 1, 0, 1, 0, 7, 0, 0]).unwrap_err(), error);
        let large = Udp { src_port: 1, dst_port: 1, payload_len: 65_530, checksum: 0 };
        assert!(large.emit(&mut vec![]).is_err());
    }
}
