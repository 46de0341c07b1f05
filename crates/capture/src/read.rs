//! Reads pcap and pcapng files, as written by Wireshark and tcpdump.

use pcap_parser::nom::IResult;
use pcap_parser::pcapng::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, PcapNGOption, parse_block_be,
    parse_block_le,
};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{
    OptionCode, PcapError, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header,
};

use crate::write::Interface;

const SECOND: u64 = 1_000_000_000;

/// Maximum number of packets and interfaces. Each takes 80 bytes and more, also if the file has only 16
/// for it.
const MAX_PACKETS: usize = 1 << 23;

/// Maximum length of a block of a pcapng file in bytes.
const MAX_BLOCK: usize = 16 << 20;

/// First bytes of a pcapng file, in either byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A captured packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Index of the interface.
    pub interface: usize,
    /// Timestamp, in ns since the Unix epoch.
    pub at_ns: u64,
    /// The captured bytes.
    pub bytes: Vec<u8>,
    /// Original length of the packet.
    pub length: u32,
    /// Comment; empty if there is none.
    pub comment: String,
}

/// Contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Packets, in file order.
    pub packets: Vec<Captured>,
}

impl Contents {
    /// Fails if there are `most` packets and interfaces.
    fn has_room(&self, most: usize) -> Result<(), Bad> {
        if self.packets.len() + self.interfaces.len() < most {
            Ok(())
        } else {
            Err(Bad::Many(most))
        }
    }
}

/// Errors in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// Not a capture file: the magic number does not match.
    #[error("neither a pcap nor a pcapng file")]
    Other,
    /// A block is malformed, truncated or too long.
    #[error(
        "block at byte {at} that is malformed, truncated, or longer than {most} MiB",
        at = .0,
        most = MAX_BLOCK >> 20
    )]
    Block(usize),
    /// More packets than the maximum.
    #[error("more than {0} packets and interfaces: split it with `editcap -c`")]
    Many(usize),
}

/// Parses a file of either format. All packets of a pcap file belong to one interface without a
/// name.
///
/// # Errors
///
/// Fails if the file has another format, a block that is malformed, truncated or too long, or more than eight
/// million packets.
pub fn read(bytes: &[u8]) -> Result<Contents, Bad> {
    read_at_most(bytes, MAX_PACKETS)
}

fn read_at_most(bytes: &[u8], most: usize) -> Result<Contents, Bad> {
    if bytes.starts_with(&PCAPNG) {
        return read_pcapng(bytes, most);
    }
    let (rest, header) = parse_pcap_header(bytes).map_err(|_| Bad::Other)?;
    // Its packets have longer headers.
    if header.is_modified_format() {
        return Err(Bad::Other);
    }
    read_pcap(bytes, rest, &header, most)
}

fn read_pcap(
    bytes: &[u8],
    mut rest: &[u8],
    header: &PcapHeader,
    most: usize,
) -> Result<Contents, Bad> {
    let mut contents = Contents { interfaces: vec![Interface::default()], packets: Vec::new() };
    let parse = if header.is_bigendian() { parse_pcap_frame_be } else { parse_pcap_frame };
    let unit = if header.is_nanosecond_precision() { 1 } else { 1000 };
    while !rest.is_empty() {
        contents.has_room(most)?;
        let (next, frame) = parse(rest).map_err(|_| Bad::Block(bytes.len() - rest.len()))?;
        contents.packets.push(Captured {
            interface: 0,
            at_ns: u64::from(frame.ts_sec) * SECOND + u64::from(frame.ts_usec) * unit,
            bytes: frame.data.to_vec(),
            length: frame.origlen,
            comment: String::new(),
        });
        rest = next;
    }
    Ok(contents)
}

fn read_pcapng(bytes: &[u8], most: usize) -> Result<Contents, Bad> {
    let mut contents = Contents::default();
    let mut section = Section::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let bad = Bad::Block(bytes.len() - rest.len());
        // Options take eight times their length in memory.
        let window = &rest[..rest.len().min(MAX_BLOCK)];
        let (after, block) = section.parse(window).map_err(|_| bad)?;
        match block {
            Block::SectionHeader(header) => {
                let first = contents.interfaces.len();
                section = Section { is_big: header.big_endian(), first, clocks: Vec::new() };
            }
            Block::InterfaceDescription(block) => {
                contents.has_room(most)?;
                contents.interfaces.push(section.interface(&block));
            }
            Block::EnhancedPacket(block) => {
                contents.has_room(most)?;
                contents.packets.push(section.packet(&block).ok_or(bad)?);
            }
            // Skip other block types.
            _ => {}
        }
        rest = &rest[window.len() - after.len()..];
    }
    Ok(contents)
}

/// A section of a pcapng file.
#[derive(Default)]
struct Section {
    is_big: bool,
    /// Index of its first interface.
    first: usize,
    clocks: Vec<Clock>,
}

impl Section {
    fn parse<'a>(&self, bytes: &'a [u8]) -> IResult<&'a [u8], Block<'a>, PcapError<&'a [u8]>> {
        if self.is_big { parse_block_be(bytes) } else { parse_block_le(bytes) }
    }

    fn interface(&mut self, block: &InterfaceDescriptionBlock<'_>) -> Interface {
        // Not `block.if_tsoffset`, which is read in little-endian order.
        let offset = value(&block.options, OptionCode::IfTsoffset);
        let offset = offset.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        let offset =
            if self.is_big { i64::from_be_bytes(offset) } else { i64::from_le_bytes(offset) };
        self.clocks.push(Clock { resolution: block.if_tsresol, offset });
        let name = text(&block.options, OptionCode::IfName);
        Interface { name, comment: text(&block.options, OptionCode::Comment) }
    }

    fn packet(&self, block: &EnhancedPacketBlock<'_>) -> Option<Captured> {
        let number = block.if_id as usize;
        let time = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
        Some(Captured {
            interface: self.first + number,
            at_ns: self.clocks.get(number)?.nanos(time)?,
            bytes: block.packet_data().to_vec(),
            length: block.origlen,
            comment: text(&block.options, OptionCode::Comment),
        })
    }
}

fn value<'a>(options: &'a [PcapNGOption<'_>], code: OptionCode) -> Option<&'a [u8]> {
    options.iter().find(|option| option.code == code)?.as_bytes().ok()
}

fn text(options: &[PcapNGOption<'_>], code: OptionCode) -> String {
    String::from_utf8_lossy(value(options, code).unwrap_or_default()).into_owned()
}

/// Timestamp resolution and offset of an interface.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Negative power of 10, or of 2 if the most significant bit is set.
    resolution: u8,
    offset: i64,
}

impl Clock {
    fn nanos(self, time: u64) -> Option<u64> {
        let Self { resolution, offset } = self;
        let power = u32::from(resolution & 0x7f);
        let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
        let time = u128::from(time) * u128::from(SECOND) / base.checked_pow(power)?;
        u64::try_from(i128::try_from(time).ok()? + i128::from(offset) * i128::from(SECOND)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::Writer;

    const SECTION: u32 = 0x0a0d_0d0a;
    const ORDER: u32 = 0x1a2b_3c4d;
    const INTERFACE: u32 = 1;
    const PACKET: u32 = 6;

    fn written() -> Vec<u8> {
        let interfaces =
            ["in", "out"].map(|name| Interface { name: name.into(), comment: format!("{name}!") });
        let mut writer = Writer::begin(Vec::new(), &interfaces, 1000).unwrap();
        writer.packet(0, 7, &[1, 2, 3], "").unwrap();
        writer.packet(1, 5 << 32, &[4; 1500], "late").unwrap();
        writer.finish().unwrap()
    }

    /// A block is parsed with all its options, each of which takes eight times its length.
    #[test]
    fn blocks_have_a_maximum_length() {
        for (is_big, is_header) in [(false, false), (true, false), (false, true), (true, true)] {
            let number = |value: u32| match is_big {
                true => value.to_be_bytes(),
                false => value.to_le_bytes(),
            };
            let length = MAX_BLOCK as u32 + 32;
            let header = [SECTION, 28, ORDER, 1, u32::MAX, u32::MAX, 28];
            let mut file: Vec<u8> = header.into_iter().flat_map(number).collect();
            let at = if is_header { 0 } else { file.len() };
            file.truncate(at);
            let kind = if is_header { [SECTION, length, ORDER] } else { [PACKET, length, 0] };
            file.extend(kind.into_iter().flat_map(number));
            file.resize(at + length as usize - 4, 0);
            file.extend(number(length));
            assert_eq!(read(&file), Err(Bad::Block(at)), "{is_big} {is_header}");
        }
    }

    #[test]
    fn a_written_capture_is_read_back() {
        let read = read(&written()).unwrap();
        assert_eq!(read.interfaces[1], Interface { name: "out".into(), comment: "out!".into() });
        let packet = |interface, at_ns, bytes: &[u8], comment: &str| Captured {
            interface,
            at_ns: 1000 * SECOND + at_ns,
            bytes: bytes.into(),
            length: bytes.len() as u32,
            comment: comment.into(),
        };
        let expected = [packet(0, 7, &[1, 2, 3], ""), packet(1, 5 << 32, &[4; 1500], "late")];
        assert_eq!(read.packets, expected);
    }

    #[test]
    fn packets_and_interfaces_are_limited() {
        // Two of each.
        assert!(read_at_most(&written(), 4).is_ok());
        assert_eq!(read_at_most(&written(), 3), Err(Bad::Many(3)));
        assert_eq!(read_at_most(&written(), 1), Err(Bad::Many(1)));
    }

    #[test]
    fn other_orders_and_clocks_are_read() {
        let block = |kind: u32, body: &[u8]| {
            let length = (body.len() as u32 + 12).to_be_bytes();
            [&kind.to_be_bytes(), &length, body, &length].concat()
        };
        let mut file =
            block(SECTION, &[&ORDER.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat());
        // Without a resolution (microseconds), and with 2^-1 seconds.
        file.extend(block(INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 0]));
        file.extend(block(INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0x81, 0, 0, 0]));
        // An unknown block type.
        file.extend(block(0x99, &[0; 8]));
        for number in [0, 1] {
            let words = [number, 0, 3, 1, 9_u32].map(u32::to_be_bytes);
            file.extend(block(PACKET, &[words.concat(), vec![7, 0, 0, 0]].concat()));
        }
        let read = read(&file).unwrap();
        let found: Vec<_> =
            read.packets.iter().map(|p| (p.at_ns, p.length, &p.bytes[..])).collect();
        assert_eq!(found, [(3000, 9, &[7][..]), (1_500_000_000, 9, &[7])]);
    }

    #[test]
    fn a_truncated_or_broken_capture_is_reported() {
        let file = written();
        assert_eq!(read(b""), Err(Bad::Other));
        assert_eq!(read(b"something else"), Err(Bad::Other));
        let whole = (1..file.len()).filter(|length| read(&file[..*length]).is_ok()).count();
        // Only at the ends of the section block, of the two interface blocks and of the first
        // packet.
        assert_eq!(whole, 4);
        for at in 0..file.len() {
            let mut other = file.clone();
            other[at] ^= 0xff;
            // Must neither loop nor panic.
            let _ = read(&other);
        }
        let mut other = file.clone();
        other[file.len() - 4] ^= 4;
        assert!(matches!(read(&other), Err(Bad::Block(_))), "the two lengths differ");
    }

    fn file(words: &[u32], packet: &[u8], big: bool) -> Vec<u8> {
        let word = |word: &u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut bytes: Vec<u8> = words.iter().flat_map(word).collect();
        bytes.extend(packet);
        bytes
    }

    #[test]
    fn packets_are_read_in_both_byte_orders_and_clocks() {
        for big in [false, true] {
            for (magic, at_ns) in [(0xa1b2_c3d4, 7_000_003_000), (0xa1b2_3c4d, 7_000_000_003)] {
                let words = [magic, 0x0002_0004, 0, 0, 65535, 1, 7, 3, 4, 60];
                let bytes = file(&words, b"abcd", big);
                let contents = read(&bytes).unwrap();
                let [packet] = &contents.packets[..] else { panic!("{contents:?}") };
                assert_eq!(
                    (packet.at_ns, &*packet.bytes, packet.length),
                    (at_ns, &b"abcd"[..], 60)
                );
                assert_eq!(read(&bytes[..bytes.len() - 1]), Err(Bad::Block(24)));
                assert_eq!(read(&bytes[..30]), Err(Bad::Block(24)));
            }
        }
        assert_eq!(read(b"abcdefgh"), Err(Bad::Other));
        let modified = file(&[0xa1b2_cd34, 0x0002_0004, 0, 0, 65535, 1], &[0; 24], false);
        assert_eq!(read(&modified), Err(Bad::Other));
    }
}
