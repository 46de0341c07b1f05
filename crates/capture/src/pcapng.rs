//! pcapng files, as written by Wireshark and tcpdump (draft-ietf-opsawg-pcapng): Ethernet frames
//! with nanosecond timestamps and comments.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;

mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    /// Options of an interface description block.
    pub(super) const NAME: u16 = 2;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const OFFSET: u16 = 14;
}

const SECOND: u64 = 1_000_000_000;

/// A capture interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Interface name.
    pub name: String,
    /// Comment; empty if there is none.
    pub comment: String,
}

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

/// Errors in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// Not a capture file: the magic number does not match.
    #[error("it is not a pcapng file")]
    Other,
    /// A block is malformed or truncated.
    #[error("the block at byte {0} is broken, or cut off")]
    Block(usize),
}

/// Writer of a pcapng file.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the file header. `offset` is the number of seconds to add to the packets' timestamps.
    pub fn begin(output: W, interfaces: &[Interface], offset: i64) -> io::Result<Self> {
        let mut writer = Self { output, block: Vec::new() };
        let mut body = ORDER.to_le_bytes().to_vec();
        // Version 1.0, section length unspecified.
        body.extend([1, 0, 0, 0]);
        body.extend((-1_i64).to_le_bytes());
        writer.block(SECTION, &body)?;
        for Interface { name, comment } in interfaces {
            body.clear();
            body.extend(ETHERNET.to_le_bytes());
            // No snapshot length limit.
            body.extend([0; 6]);
            add(&mut body, option::NAME, name.as_bytes());
            if !comment.is_empty() {
                add(&mut body, option::COMMENT, comment.as_bytes());
            }
            add(&mut body, option::RESOLUTION, &[9]);
            add(&mut body, option::OFFSET, &offset.to_le_bytes());
            add(&mut body, option::END, &[]);
            writer.block(INTERFACE, &body)?;
        }
        Ok(writer)
    }

    /// Appends a packet captured on an interface.
    pub fn packet(
        &mut self,
        interface: u32,
        at_ns: u64,
        bytes: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        let mut body = std::mem::take(&mut self.block);
        body.clear();
        let length = bytes.len() as u32;
        for word in [interface, (at_ns >> 32) as u32, at_ns as u32, length, length] {
            body.extend(word.to_le_bytes());
        }
        body.extend(bytes);
        pad(&mut body);
        if !comment.is_empty() {
            add(&mut body, option::COMMENT, comment.as_bytes());
            add(&mut body, option::END, &[]);
        }
        let done = self.block(PACKET, &body);
        self.block = body;
        done
    }

    /// Flushes and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let length = (body.len() as u32 + 12).to_le_bytes();
        self.output.write_all(&kind.to_le_bytes())?;
        self.output.write_all(&length)?;
        self.output.write_all(body)?;
        self.output.write_all(&length)
    }
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

fn add(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // An option value is limited to 65,535 bytes.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Parses a file.
pub fn read(bytes: &[u8]) -> Result<Contents, Bad> {
    let mut contents = Contents::default();
    // State of the section: byte order, clocks of its interfaces, and index of its first interface.
    let (mut big, mut clocks, mut first) = (false, Vec::new(), 0);
    let mut at = 0;
    while at < bytes.len() {
        let bad = Bad::Block(at);
        let block = Words { bytes: &bytes[at..], big };
        let kind = block.u32(0).ok_or(bad)?;
        if kind == SECTION {
            big = match block.bytes.get(8..12) {
                Some(order) if order == ORDER.to_le_bytes() => false,
                Some(order) if order == ORDER.to_be_bytes() => true,
                _ => return Err(Bad::Other),
            };
            (clocks, first) = (Vec::new(), contents.interfaces.len());
        } else if at == 0 {
            return Err(Bad::Other);
        }
        let block = Words { bytes: &bytes[at..], big };
        let length = block.u32(4).ok_or(bad)? as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(bad);
        }
        let body = Words { bytes: block.bytes.get(8..length - 4).ok_or(bad)?, big };
        // The block ends with a copy of its length.
        if block.u32(length - 4) != Some(length as u32) {
            return Err(bad);
        }
        match kind {
            INTERFACE => {
                let (interface, clock) = body.interface().ok_or(bad)?;
                contents.interfaces.push(interface);
                clocks.push(clock);
            }
            PACKET => contents.packets.push(body.packet(&clocks, first).ok_or(bad)?),
            // Skip other block types.
            _ => {}
        }
        at += length;
    }
    if at == 0 { Err(Bad::Other) } else { Ok(contents) }
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

/// Bytes with a byte order.
#[derive(Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Words<'a> {
    fn part<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let mut part: [u8; N] = self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()?;
        if self.big {
            part.reverse();
        }
        Some(part)
    }

    fn u16(&self, at: usize) -> Option<u16> {
        self.part(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.part(at).map(u32::from_le_bytes)
    }

    /// Iterates over the options from `at` on.
    fn options(&self, mut at: usize, mut each: impl FnMut(u16, Words<'a>)) -> Option<()> {
        while at < self.bytes.len() {
            let (code, length) = (self.u16(at)?, usize::from(self.u16(at + 2)?));
            if code == option::END {
                break;
            }
            let value = self.bytes.get(at + 4..at + 4 + length)?;
            each(code, Words { bytes: value, big: self.big });
            at += 4 + length.next_multiple_of(4);
        }
        Some(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    fn interface(&self) -> Option<(Interface, Clock)> {
        let mut interface = Interface::default();
        // The default resolution is microseconds.
        let mut clock = Clock { resolution: 6, offset: 0 };
        self.u32(4)?;
        self.options(8, |code, value| match code {
            option::NAME => interface.name = value.text(),
            option::COMMENT => interface.comment = value.text(),
            option::RESOLUTION => clock.resolution = *value.bytes.first().unwrap_or(&6),
            option::OFFSET => clock.offset = value.part(0).map_or(0, i64::from_le_bytes),
            _ => {}
        })?;
        Some((interface, clock))
    }

    fn packet(&self, clocks: &[Clock], first: usize) -> Option<Captured> {
        let number = self.u32(0)? as usize;
        let clock = clocks.get(number)?;
        let time = u64::from(self.u32(4)?) << 32 | u64::from(self.u32(8)?);
        let (there, length) = (self.u32(12)? as usize, self.u32(16)?);
        let bytes = self.bytes.get(20..20_usize.checked_add(there)?)?.to_vec();
        let mut comment = String::new();
        self.options(20 + there.next_multiple_of(4), |code, value| {
            if code == option::COMMENT {
                comment = value.text();
            }
        })?;
        let at_ns = clock.nanos(time)?;
        Some(Captured { interface: first + number, at_ns, bytes, length, comment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let interfaces =
            ["in", "out"].map(|name| Interface { name: name.into(), comment: format!("{name}!") });
        let mut writer = Writer::begin(Vec::new(), &interfaces, 1000).unwrap();
        writer.packet(0, 7, &[1, 2, 3], "").unwrap();
        writer.packet(1, 5 << 32, &[4; 1500], "late").unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
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
        file.extend(block(5, &[0; 8]));
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
    fn what_is_cut_off_or_broken_is_said() {
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
}
