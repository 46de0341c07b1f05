//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// A running sum of 16-bit words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds `bytes` to the sum; an odd last byte is padded with a zero.
    #[must_use]
    #[inline]
    pub fn with(self, bytes: &[u8]) -> Self {
        // Words of 32 bits have the same sum after folding the carries (section 2 (B)), in half the
        // steps.
        let (words, rest) = bytes.as_chunks::<4>();
        let words = words.iter().map(|word| u64::from(u32::from_be_bytes(*word)));
        let rest = rest.chunks(2).map(|pair| {
            let low = pair.get(1).copied().unwrap_or(0);
            u64::from(u16::from_be_bytes([pair[0], low]))
        });
        Self(self.0 + words.sum::<u64>() + rest.sum::<u64>())
    }

    /// The checksum: the complement of the sum. It is 0 for bytes that include a valid checksum.
    #[inline]
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        // The loop has folded the sum into 16 bits.
        !(sum as u16)
    }
}

/// The checksum of an upper-layer packet, including the pseudo-header (RFC 9293 section 3.1, RFC
/// 8200 section 8.1). The checksum field in `packet` must be zero. None if the two addresses are of
/// different families, because no pseudo-header is defined for them.
pub fn transport_checksum(src: IpAddr, dst: IpAddr, protocol: u8, packet: &[u8]) -> Option<u16> {
    let sum = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Checksum::default().with(&src.octets()).with(&dst.octets())
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Checksum::default().with(&src.octets()).with(&dst.octets())
        }
        _ => return None,
    };
    // Summed as 16-bit words, the 16-bit length of IPv4 and the 32-bit length of IPv6 are equal.
    let length = u32::try_from(packet.len()).ok()?;
    Some(sum.with(&length.to_be_bytes()).with(&[0, protocol]).with(packet).finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the sum of the words is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::default().with(&bytes).finish(), !0xddf2);
        assert_eq!(Checksum::default().with(&[0xff]).finish(), !0xff00);
    }

    #[test]
    fn sums_of_32_bits_are_those_of_16() {
        for length in 0..70 {
            let bytes: Vec<u8> = (0..length).map(|n: u8| n.wrapping_mul(73) ^ 0xa5).collect();
            let mut sum: u32 = bytes.chunks(2).fold(0, |sum, pair| {
                let low = pair.get(1).copied().unwrap_or(0);
                sum + u32::from(u16::from_be_bytes([pair[0], low]))
            });
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            assert_eq!(Checksum::default().with(&bytes).finish(), !(sum as u16), "{length}");
        }
    }

    #[test]
    fn a_packet_with_its_checksum_sums_up_to_zero() {
        let addresses = [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")];
        for (src, dst) in addresses.map(|(s, d)| (s.parse().unwrap(), d.parse().unwrap())) {
            let mut packet = *b"\x14\x51\x14\x51\x00\x0b\x00\x00abc";
            let sum = transport_checksum(src, dst, 17, &packet).unwrap();
            packet[6..8].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(transport_checksum(src, dst, 17, &packet), Some(0));
        }
        let (v4, v6) = ("10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap());
        assert_eq!(transport_checksum(v4, v6, 17, &[]), None);
    }
}
