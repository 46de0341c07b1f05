//! Messages of netfilter queues (linux/netfilter/nfnetlink_queue.h).

use emulator::Nanos;

/// The kind of all messages, in the high byte of their type.
const SUBSYSTEM: u16 = 3;
const PACKET: u16 = SUBSYSTEM << 8;
const CONFIG: u16 = SUBSYSTEM << 8 | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM << 8 | 3;

/// Bytes of a message's header, and of netfilter's own behind it.
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
    /// The socket gets the queue's packets.
    Bind,
    /// Whole packets are copied.
    CopyAll,
    /// So many packets wait at most.
    Length(u32),
    /// Packets with many segments come as they are.
    Segments,
    /// Where the queue is full packets go on instead of being dropped.
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

/// Asks for a setting; the kernel answers.
pub(super) fn configure(queue: u16, setting: Setting) -> Vec<u8> {
    message(CONFIG, REQUEST | ACKNOWLEDGE, queue, &setting.attributes())
}

/// Drops all packets of a queue up to this one.
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

/// What the kernel says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// Here is a packet.
    Packet(Came<'a>),
    /// What was asked for is done, or an error number.
    Answer(i32),
}

/// A packet in a queue.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Came<'a> {
    /// Its number in the queue.
    pub(super) id: u32,
    /// Its EtherType.
    pub(super) kind: u16,
    /// The time of day when the kernel had it, to the microsecond, if it looked.
    pub(super) at: Option<Nanos>,
    /// The checksum of its transport is still to be made.
    pub(super) unfinished: bool,
    /// It is many segments.
    pub(super) is_many: bool,
    /// The IP packet.
    pub(super) payload: &'a [u8],
}

/// Reads a message; none if it is cut off or of another kind.
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

    /// A packet's message, as the kernel writes it.
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
        // Cut off anywhere it is none, or has no payload; and nothing panics.
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
