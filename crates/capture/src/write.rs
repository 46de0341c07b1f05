//! Writes pcapng files (draft-ietf-opsawg-pcapng): Ethernet frames with nanosecond timestamps and
//! comments.

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

/// A capture interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Interface name.
    pub name: String,
    /// Comment; empty if there is none.
    pub comment: String,
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
