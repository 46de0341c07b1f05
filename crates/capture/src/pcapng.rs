//! Files of packets, as Wireshark and tcpdump have them (draft-ietf-opsawg-pcapng): Ethernet, times in
//! nanoseconds, comments.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const ORDER: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;

mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    /// Of an interface.
    pub(super) const NAME: u16 = 2;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const OFFSET: u16 = 14;
}

const SECOND: u64 = 1_000_000_000;

/// What packets were seen at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// What is said of it; nothing if empty.
    pub comment: String,
}

/// A packet of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The number of its interface.
    pub interface: usize,
    /// When it was seen, ns since the Unix epoch.
    pub at_ns: u64,
    /// The bytes that are there.
    pub bytes: Vec<u8>,
    /// How many there were.
    pub length: u32,
    /// What is said of it; nothing if empty.
    pub comment: String,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Where packets were seen.
    pub interfaces: Vec<Interface>,
    /// In the file's order.
    pub packets: Vec<Captured>,
}

/// Why bytes are no such file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// It begins with something else.
    #[error("it is no pcapng file")]
    Other,
    /// A block does not fit.
    #[error("the block at byte {0} is broken, or cut off")]
    Block(usize),
}

/// Writes a file.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins it. `offset`: seconds that are to be added to the times of its packets.
    pub fn begin(output: W, interfaces: &[Interface], offset: i64) -> io::Result<Self> {
        let mut writer = Self { output, block: Vec::new() };
        let mut body = ORDER.to_le_bytes().to_vec();
        // Version 1.0, of no length that is known.
        body.extend([1, 0, 0, 0]);
        body.extend((-1_i64).to_le_bytes());
        writer.block(SECTION, &body)?;
        for Interface { name, comment } in interfaces {
            body.clear();
            body.extend(ETHERNET.to_le_bytes());
            // Packets are of any length.
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

    /// Adds a packet that was seen at an interface.
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

    /// What it has written to.
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
    // A comment may be no longer.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Result<Contents, Bad> {
    let mut contents = Contents::default();
    // Of the section: its byte order, its interfaces' clocks, and the number of the first of them.
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
        // Its end says its length again.
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
            // What else there may be is none of ours.
            _ => {}
        }
        at += length;
    }
    if at == 0 { Err(Bad::Other) } else { Ok(contents) }
}

/// How an interface's times are to be read.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Of a second: to the power of 10, or of 2.
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

/// Bytes in an order.
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

    /// The options from here on.
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
        // Microseconds, unless it says otherwise.
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
        // No clock: microseconds. And 2^-1 seconds.
        file.extend(block(INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 0]));
        file.extend(block(INTERFACE, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0x81, 0, 0, 0]));
        // Of another kind.
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
        // At the ends of the section's block, of two interfaces', and of the first packet's.
        assert_eq!(whole, 4);
        for at in 0..file.len() {
            let mut other = file.clone();
            other[at] ^= 0xff;
            // It ends, and does not panic.
            let _ = read(&other);
        }
        let mut other = file.clone();
        other[file.len() - 4] ^= 4;
        assert!(matches!(read(&other), Err(Bad::Block(_))), "the two lengths differ");
    }
}
