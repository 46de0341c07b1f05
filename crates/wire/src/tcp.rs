//! TCP (RFC 9293 section 3.1): the fields that captures need.

use crate::WireError;
use crate::bytes::{array_at, need, u16_at};

/// A view of a TCP segment.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |          Source Port          |       Destination Port        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                        Sequence Number                        |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |                    Acknowledgment Number                      |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// | Offset|       |     Flags     |            Window             |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |           Checksum            |        Urgent Pointer         |
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |  options
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TcpPacket<T>(T);

/// The length of a header without options.
const FIXED: usize = 20;

impl<T: AsRef<[u8]>> TcpPacket<T> {
    /// A view of `bytes`, if they hold the header, including options.
    #[inline]
    pub fn new_checked(bytes: T) -> Result<Self, WireError> {
        need("TCP", bytes.as_ref(), FIXED)?;
        let packet = Self(bytes);
        let length = packet.header_len();
        if length < FIXED {
            return Err(WireError::Length { header: "TCP", length });
        }
        need("TCP", packet.0.as_ref(), length)?;
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

    /// The sequence number.
    #[inline]
    pub fn sequence(&self) -> u32 {
        u32::from_be_bytes(array_at(self.0.as_ref(), 4))
    }

    /// The length of the header, including options.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.0.as_ref()[12] >> 4) * 4
    }

    /// The payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[self.header_len()..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports_and_payload() {
        let mut bytes = [0_u8; 26];
        bytes[..8].copy_from_slice(&[0x03, 0xe8, 0x14, 0x51, 0, 0, 1, 2]);
        bytes[12] = 0x60;
        bytes[24..].copy_from_slice(b"hi");
        let packet = TcpPacket::new_checked(&bytes).unwrap();
        assert_eq!((packet.src_port(), packet.dst_port(), packet.sequence()), (1000, 5201, 258));
        assert_eq!(packet.payload(), b"hi");
        bytes[12] = 0x70;
        assert!(TcpPacket::new_checked(&bytes).is_err());
        bytes[12] = 0x40;
        let error = WireError::Length { header: "TCP", length: 16 };
        assert_eq!(TcpPacket::new_checked(&bytes).unwrap_err(), error);
    }
}
