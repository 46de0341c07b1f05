//! Header offsets of a packet with segmentation offload.

use wire::{Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket, behind_tags, ethertype, protocol};

use super::{Cut, Segments};

/// Length of an IPv6 header.
pub(super) const IPV6: usize = 40;
const UDP: usize = 8;

/// Transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// Offset of the checksum in the transport header.
    pub(super) fn checksum(self) -> u16 {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }
}

/// Header offsets in bytes from the start of the frame.
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
    /// Returns the layout of a frame to be segmented, or `None` if it cannot be.
    pub(super) fn parse(bytes: &[u8], segments: Segments) -> Option<Self> {
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

    /// Length of the headers that precede each segment's payload.
    pub(super) fn headers(&self) -> usize {
        self.payload
    }

    /// Length of the largest segment in bytes.
    pub(super) fn largest(&self) -> usize {
        self.payload + self.size
    }

    /// Number of segments.
    pub(super) fn count(&self) -> usize {
        (self.end - self.payload).div_ceil(self.size).max(1)
    }
}
