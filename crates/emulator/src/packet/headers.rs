//! Where the headers of a packet with many segments are.

use wire::{Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket, behind_tags, ethertype, protocol};

use super::{Cut, Segments};

/// Bytes of an IPv6 header.
pub(super) const IPV6: usize = 40;
const UDP: usize = 8;

/// What is above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// Where its checksum is, from its header's beginning.
    pub(super) fn checksum(self) -> u16 {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// Where headers begin, in bytes of the frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) is_ipv6: bool,
    pub(super) kind: Transport,
    pub(super) network: usize,
    pub(super) transport: usize,
    pub(super) payload: usize,
    end: usize,
    size: usize,
}

impl Layout {
    /// That of a frame that is to be cut up so; nothing if it is none.
    pub(super) fn of(bytes: &[u8], segments: Segments) -> Option<Self> {
        let (kind, network) = behind_tags(bytes, |_| ()).ok()?;
        let packet = &bytes[network..];
        let (is_ipv6, header, next) = match kind {
            ethertype::IPV4 => {
                let ip = Ipv4Packet::new_checked(packet).ok()?;
                (false, ip.header_len(), ip.protocol())
            }
            ethertype::IPV6 => {
                let ip = Ipv6Packet::new_checked(packet).ok()?;
                (true, IPV6, ip.next_header())
            }
            _ => return None,
        };
        let transport = network + header;
        let rest = bytes.get(transport..)?;
        let (kind, header) = match (segments.cut, is_ipv6, next) {
            (Cut::Tcp4, false, protocol::TCP) | (Cut::Tcp6, true, protocol::TCP) => {
                (Transport::Tcp, TcpPacket::new_checked(rest).ok()?.header_len())
            }
            (Cut::Udp, _, protocol::UDP) => {
                UdpPacket::new_checked(rest).ok()?;
                (Transport::Udp, UDP)
            }
            _ => return None,
        };
        let size = usize::from(segments.size);
        let layout = Self {
            is_ipv6,
            kind,
            network,
            transport,
            payload: transport + header,
            end: bytes.len(),
            size,
        };
        (size > 0 && layout.payload <= layout.end).then_some(layout)
    }

    /// Bytes in front of each segment's payload.
    pub(super) fn headers(&self) -> usize {
        self.payload
    }

    /// Bytes of the largest segment.
    pub(super) fn largest(&self) -> usize {
        self.payload + self.size
    }

    /// How many segments there are.
    pub(super) fn count(&self) -> usize {
        (self.end - self.payload).div_ceil(self.size).max(1)
    }
}
