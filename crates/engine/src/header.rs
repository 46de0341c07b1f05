//! What the kernel says of a frame that passes a packet socket, and is told of one
//! (linux/virtio_net.h): a checksum that is still to be made, or many segments in one.

use emulator::{Cut, Packet, Segments, Unfinished};

/// Bytes of it in front of each frame.
pub(crate) const LENGTH: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const NONE: u8 = 0;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
/// With one of the others: CWR is set in the first segment.
const ECN: u8 = 0x80;

/// Bytes that the kernel inserts or takes out in front of IP: a VLAN tag.
pub(crate) const TAG: usize = 4;

/// The packet behind the header; none if the kernel says of it what nobody here understands. `inserted`:
/// how many bytes the frame has more than when the kernel said so.
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

/// The header for a packet.
pub(crate) fn of(packet: &Packet) -> [u8; LENGTH] {
    behind(packet, 0)
}

/// The header for a packet whose first bytes are left out.
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
        // How far the headers go: the kernel looks for itself, and wants to copy that much at least.
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
    fn what_the_kernel_says_is_what_it_is_told() {
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
        // Of the kernel's own kinds, one that is none of these.
        assert_eq!(self::packet([0, 3, 0, 0, 0, 0, 0, 0, 0, 0], &frame, 0), None);
    }
}
