//! Messages of netfilter queues (linux/netfilter/nfnetlink_queue.h).

use emulator::Nanos;

/// Netfilter subsystem, the high byte of the message type.
const SUBSYSTEM: u16 = 3;
const PACKET: u16 = SUBSYSTEM << 8;
const CONFIG: u16 = SUBSYSTEM << 8 | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM << 8 | 3;

/// Lengths of the netlink-layer header and of the netfilter header that follows it.
const HEADER: usize = 16;
const FAMILY: usize = 4;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;

mod attribute {
    pub(super) const PACKET_HEADER: u16 = 1;
    pub(super) const TIMESTAMP: u16 = 4;
    pub(super) const PAYLOAD: u16 = 10;
    pub(super) const SKB_INFO: u16 = 14;
}

/// A setting of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) enum Setting {
    /// Bind the socket to the queue.
    Bind,
    /// Copy whole packets.
    CopyAll,
    /// Maximum queue length in packets.
    Length(u32),
    /// Pass packets with several segments unsegmented (GSO).
    Segments,
    /// Accept packets instead of dropping them when the queue is full.
    FailOpen,
}

impl Setting {
    fn attributes(self) -> Vec<u8> {
        const FAIL_OPEN: u32 = 1;
        const GSO: u32 = 4;
        let flag =
            |flag: u32| [attribute(4, &flag.to_be_bytes()), attribute(5, &flag.to_be_bytes())];
        match self {
            Self::Bind => attribute(1, &[1, 0, 0, 0]),
            Self::CopyAll => attribute(2, &[0, 0, 0xff, 0xff, 2]),
            Self::Length(packets) => attribute(3, &packets.to_be_bytes()),
            Self::Segments => flag(GSO).concat(),
            Self::FailOpen => flag(FAIL_OPEN).concat(),
        }
    }
}

/// Builds a configuration request, which the kernel acknowledges.
pub(super) fn configure(queue: u16, setting: Setting) -> Vec<u8> {
    message(CONFIG, REQUEST | ACKNOWLEDGE, queue, &setting.attributes())
}

/// Builds a verdict that drops all packets of a queue up to this one.
pub(super) fn drop_all(queue: u16, last: u32) -> Vec<u8> {
    const DROP: u32 = 0;
    let verdict = [DROP.to_be_bytes(), last.to_be_bytes()].concat();
    message(VERDICT_BATCH, REQUEST, queue, &attribute(2, &verdict))
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, flags: u16, queue: u16, attributes: &[u8]) -> Vec<u8> {
    let length = (HEADER + FAMILY + attributes.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    // Any family, version 0.
    bytes.extend([0, 0]);
    bytes.extend(queue.to_be_bytes());
    bytes.extend(attributes);
    bytes
}

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// A queued packet.
    Packet(Came<'a>),
    /// Acknowledgement (0) or negative error number.
    Answer(i32),
}

/// A packet in a queue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Came<'a> {
    /// Packet id.
    pub(super) id: u32,
    /// EtherType.
    pub(super) kind: u16,
    /// Wall-clock timestamp with microsecond resolution, if the kernel recorded one.
    pub(super) at: Option<Nanos>,
    /// The transport checksum is pending.
    pub(super) unfinished: bool,
    /// The packet consists of several segments (GSO).
    pub(super) is_many: bool,
    /// The IP packet.
    pub(super) payload: &'a [u8],
}

/// Parses a message. Returns `None` if it is truncated or of another type.
pub(super) fn read(bytes: &[u8]) -> Option<Said<'_>> {
    const ERROR: u16 = 2;
    let half = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let length = (word(0)? as usize).min(bytes.len());
    match half(4)? {
        ERROR => Some(Said::Answer(word(HEADER)?.cast_signed())),
        PACKET => came(bytes.get(HEADER + FAMILY..length)?).map(Said::Packet),
        _ => None,
    }
}

fn came(mut attributes: &[u8]) -> Option<Came<'_>> {
    const NESTED: u16 = 0xc000;
    const CHECKSUM_NOT_READY: u32 = 1;
    const GSO: u32 = 2;
    let mut came = Came::default();
    let mut has_id = false;
    while let Some(header) = attributes.first_chunk::<4>() {
        let [a, b, c, d] = *header;
        let (length, kind) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]) & !NESTED);
        let value = attributes.get(4..usize::from(length))?;
        match kind {
            attribute::PACKET_HEADER => {
                came.id = u32::from_be_bytes(*value.first_chunk()?);
                came.kind = u16::from_be_bytes(*value.get(4..)?.first_chunk()?);
                has_id = true;
            }
            attribute::SKB_INFO => {
                let flags = u32::from_be_bytes(*value.first_chunk()?);
                came.unfinished = flags & CHECKSUM_NOT_READY != 0;
                came.is_many = flags & GSO != 0;
            }
            attribute::TIMESTAMP => {
                let seconds = u64::from_be_bytes(*value.first_chunk()?);
                let micros = u64::from_be_bytes(*value.get(8..)?.first_chunk()?);
                let second = seconds.checked_mul(1_000_000_000);
                came.at = second.and_then(|at| at.checked_add(micros.checked_mul(1000)?));
            }
            attribute::PAYLOAD => came.payload = value,
            _ => {}
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    has_id.then_some(came)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a packet message as the kernel does.
    fn packet(payload: &[u8], flags: u32) -> Vec<u8> {
        let header = [&7_u32.to_be_bytes()[..], &[0x86, 0xdd, 0]].concat();
        let time = [1_700_000_000_u64, 123_456].map(u64::to_be_bytes).concat();
        let attributes = [
            attribute(attribute::PACKET_HEADER, &header),
            attribute(attribute::TIMESTAMP, &time),
            attribute(attribute::SKB_INFO, &flags.to_be_bytes()),
            attribute(attribute::PAYLOAD, payload),
        ];
        message(PACKET, 0, 3, &attributes.concat())
    }

    #[test]
    fn packets_are_read() {
        let bytes = packet(b"payload", 3);
        let came = Came {
            id: 7,
            kind: 0x86dd,
            at: Some(1_700_000_000_123_456_000),
            unfinished: true,
            is_many: true,
            payload: b"payload",
        };
        assert_eq!(read(&bytes), Some(Said::Packet(came)));
        // A truncated message is rejected or has no payload, and never causes a panic.
        for length in 0..bytes.len() - 1 {
            if let Some(Said::Packet(came)) = read(&bytes[..length]) {
                assert!(came.payload.is_empty(), "{length}");
            }
        }
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        let mut bytes = packet(b"payload", 0);
        for at in HEADER + FAMILY..bytes.len() {
            for value in [0, 1, 3, 0xff] {
                let before = std::mem::replace(&mut bytes[at], value);
                let _ = read(&bytes);
                bytes[at] = before;
            }
        }
    }
}
