//! The virtio_net_hdr of packet sockets and tun devices (linux/virtio_net.h): pending checksum and
//! segmentation offloads of a frame.

use emulator::{Cut, Packet, Segments, Unfinished};

/// Length of the header that precedes each frame.
pub(crate) const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const NONE: u8 = 0;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
/// Flag added to a segmentation type: CWR is set in the first segment.
const ECN: u8 = 0x80;

/// Length of a VLAN tag, which the kernel inserts or removes before the IP header.
pub(crate) const TAG: usize = 4;

/// Returns the packet that follows the header, or `None` if the header's values are not supported.
/// `inserted` is the number of bytes inserted into the frame after the kernel wrote the header.
pub(crate) fn packet(header: [u8; LENGTH], frame: &[u8], inserted: usize) -> Option<Packet> {
    let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let [flags, kind, ..] = header;
    let (size, start, offset) = (word(4), word(6), word(8));
    let unfinished = (flags & NEEDS_CHECKSUM != 0)
        .then(|| Unfinished { start: start.saturating_add(inserted as u16), offset });
    let segments = match kind & !ECN {
        NONE => None,
        TCP4 => Some(Segments { cut: Cut::Tcp4, size }),
        TCP6 => Some(Segments { cut: Cut::Tcp6, size }),
        UDP => Some(Segments { cut: Cut::Udp, size }),
        _ => return None,
    };
    Packet::offloaded(frame, unfinished, segments).ok()
}

/// Returns the header for a packet.
pub(crate) fn of(packet: &Packet) -> [u8; LENGTH] {
    behind(packet, 0)
}

/// Returns the header for a packet without its first bytes.
pub(crate) fn behind(packet: &Packet, left_out: usize) -> [u8; LENGTH] {
    let left_out = left_out as u16;
    let mut header = [0; LENGTH];
    let mut put = |at: usize, value: u16| {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    };
    if let Some(Unfinished { start, offset }) = packet.unfinished() {
        put(6, start.saturating_sub(left_out));
        put(8, offset);
    }
    if let Some(segments) = packet.segments() {
        // Length of the headers. The kernel parses them itself, and copies at least this much.
        put(2, packet.header_length().saturating_sub(left_out));
        put(4, segments.size);
        header[1] = match segments.cut {
            Cut::Tcp4 => TCP4,
            Cut::Tcp6 => TCP6,
            Cut::Udp => UDP,
        };
    }
    header[0] = if packet.unfinished().is_some() { NEEDS_CHECKSUM } else { 0 };
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offload_headers_survive_a_round_trip() {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([7; 10]);
        let mut header = [NEEDS_CHECKSUM, TCP4, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, value) in [(2, 54_u16), (4, 3), (6, 34), (8, 16)] {
            header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
        }
        let packet = packet(header, &frame, 0).unwrap();
        assert_eq!(packet.segments(), Some(Segments { cut: Cut::Tcp4, size: 3 }));
        assert_eq!(of(&packet), header);
        let plain = self::packet([0; LENGTH], &frame, 0).unwrap();
        assert_eq!((plain.segments(), of(&plain)), (None, [0; LENGTH]));
        // A segmentation type of the kernel that is not supported.
        assert_eq!(self::packet([0, 3, 0, 0, 0, 0, 0, 0, 0, 0], &frame, 0), None);
    }
}
