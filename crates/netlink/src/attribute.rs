//! Netlink attributes as bytes, for messages that netlink-packet-route has no type for, and for
//! reading a few attributes out of long messages.
//!
//! ```text
//!  0                   1                   2                   3
//! |          length (u16)         |  type (u16, top bit: nested)  |
//! |             value, padded with zeros to 4 bytes               |
//! ```

use netlink_packet_core::{DecodeError, NLA_F_NESTED, NlaBuffer, NlasIterator};

/// A message body under construction.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    /// Appends one attribute.
    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(4 + value.len()).expect("no attribute here nears 64 KiB");
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends a string with its terminating zero. Escaped bytes ([`text`]) are written as they are.
    pub(crate) fn put_text(&mut self, kind: u16, text: &str) -> &mut Self {
        let mut value = Vec::with_capacity(text.len() + 1);
        for char in text.chars() {
            match ESCAPED.contains(&char) {
                // The low byte of the code point is the escaped byte.
                true => value.push(char as u8),
                false => value.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        value.push(0);
        self.put(kind, &value)
    }

    /// Appends a nested attribute that contains the attributes appended by `fill`.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.put(kind | NLA_F_NESTED, &inner.0)
    }
}

/// The attributes in `bytes`.
pub(crate) fn each(
    bytes: &[u8],
) -> impl Iterator<Item = Result<NlaBuffer<&[u8]>, DecodeError>> + '_ {
    NlasIterator::new(bytes)
}

/// The bytes after a fixed header of `length`.
pub(crate) fn after(bytes: &[u8], length: usize) -> Result<&[u8], DecodeError> {
    bytes.get(length..).ok_or_else(|| DecodeError::buffer_too_small(bytes.len(), length))
}

/// The `N` bytes at offset `at`.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], DecodeError> {
    bytes
        .get(at..at + N)
        .and_then(|slice| slice.try_into().ok())
        .ok_or_else(|| DecodeError::buffer_too_small(bytes.len(), at + N))
}

/// The u32 at offset `at`, in host byte order.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Result<u32, DecodeError> {
    array(bytes, at).map(u32::from_ne_bytes)
}

/// The u64 at offset `at`, in host byte order.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Result<u64, DecodeError> {
    array(bytes, at).map(u64::from_ne_bytes)
}

/// Characters of the private use area that stand for the bytes 0x80 to 0xff.
const ESCAPED: std::ops::RangeInclusive<char> = '\u{f780}'..='\u{f7ff}';

/// A string, without its terminating zero. Names of interfaces may have any bytes: those that are not
/// UTF-8 are escaped, one to one, so that different names stay different. So are the bytes of the
/// escaping characters themselves.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let escaped = |byte: &u8| char::from_u32(0xf700 | u32::from(*byte)).unwrap_or_default();
    let mut text = String::with_capacity(end);
    for chunk in bytes[..end].utf8_chunks() {
        for char in chunk.valid().chars() {
            match ESCAPED.contains(&char) {
                true => text.extend(char.encode_utf8(&mut [0; 4]).as_bytes().iter().map(escaped)),
                false => text.push(char),
            }
        }
        text.extend(chunk.invalid().iter().map(escaped));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_read_and_written_back() {
        let of_escaped = '\u{f7ff}'.to_string();
        for bytes in [&b"eth0"[..], "\u{e4}".as_bytes(), b"\xff\x80a\xc3", of_escaped.as_bytes()] {
            let mut body = Writer::default();
            body.put_text(1, &text(bytes));
            let read = each(&body.0).next().unwrap().unwrap();
            assert_eq!(read.value(), [bytes, &[0]].concat(), "{bytes:x?}");
        }
        assert_eq!(text(b"\xff\0a"), "\u{f7ff}");
        assert_ne!(text(of_escaped.as_bytes()), text(b"\xff"));
    }

    #[test]
    fn written_attributes_are_padded_and_read_back() {
        let mut body = Writer::default();
        body.put_text(1, "ab").nest(2, |inner| {
            inner.put(3, &7u32.to_ne_bytes());
        });
        assert_eq!(body.0.len(), 8 + 12);
        let read: Vec<_> = each(&body.0).map(|a| a.unwrap()).collect();
        assert_eq!((read[0].kind(), text(read[0].value())), (1, "ab".into()));
        assert_eq!((read[1].kind(), read[1].nested_flag()), (2, true));
        let inner = each(read[1].value()).next().unwrap().unwrap();
        assert_eq!(u32_at(inner.value(), 0).unwrap(), 7);
        assert!(u64_at(inner.value(), 0).is_err());
    }
}
