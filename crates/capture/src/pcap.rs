//! pcap files, the classic tcpdump format: a file header, then packets with a header each.

use crate::pcapng::{Bad, Captured, Contents, Interface};

/// Returns the byte order and the clock unit in ns if the bytes start with a pcap magic number.
fn head(bytes: &[u8]) -> Option<(bool, u64)> {
    match bytes.first_chunk::<4>()? {
        [0xd4, 0xc3, 0xb2, 0xa1] => Some((false, 1000)),
        [0xa1, 0xb2, 0xc3, 0xd4] => Some((true, 1000)),
        [0x4d, 0x3c, 0xb2, 0xa1] => Some((false, 1)),
        [0xa1, 0xb2, 0x3c, 0x4d] => Some((true, 1)),
        _ => None,
    }
}

/// Parses a file. All packets belong to one interface without a name.
///
/// # Errors
///
/// Fails on a different magic number, or if the file is truncated.
pub fn read(bytes: &[u8]) -> Result<Contents, Bad> {
    const HEAD: usize = 24;
    const EACH: usize = 16;
    let (big, unit) = head(bytes).ok_or(Bad::Other)?;
    let word = |at: usize| {
        let four = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if big { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) })
    };
    let mut contents = Contents { interfaces: vec![Interface::default()], packets: Vec::new() };
    let mut at = HEAD;
    while at < bytes.len() {
        let bad = Bad::Block(at);
        let number = |behind: usize| word(at + behind).ok_or(bad);
        let (seconds, parts, size, length) = (number(0)?, number(4)?, number(8)?, number(12)?);
        let packet = bytes.get(at + EACH..).and_then(|rest| rest.get(..size as usize));
        contents.packets.push(Captured {
            interface: 0,
            at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(parts) * unit,
            bytes: packet.ok_or(bad)?.to_vec(),
            length,
            comment: String::new(),
        });
        at += EACH + size as usize;
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
