//! Little-endian encoding of messages. Input is not trusted: a message that is truncated or has
//! trailing bytes is invalid.

use p4::object::{Digest, Entry, Key, Map, MapKind, WordRange};

use crate::control::Operation;
use crate::maps::MapError;

#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    /// Length of a sequence. Messages are shorter than 4 GiB.
    pub(super) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    pub(super) fn key(&mut self, key: &Key) {
        match key {
            Key::Bytes(bytes) => {
                self.u8(0);
                self.bytes(bytes);
            }
            Key::Words(words, priority) => {
                self.u8(1);
                self.u32(*priority);
                self.count(words.len());
                for word in words {
                    [word.mask, word.from, word.to].into_iter().for_each(|number| self.u64(number));
                }
            }
        }
    }

    pub(super) fn entry(&mut self, entry: &Entry) {
        self.u32(entry.map);
        self.key(&entry.key);
        self.bytes(&entry.value);
    }

    pub(super) fn operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Put(entry) => {
                self.u8(0);
                self.entry(entry);
            }
            Operation::Delete { map, key } => {
                self.u8(1);
                self.u32(*map);
                self.key(key);
            }
            Operation::Clear { map } => {
                self.u8(2);
                self.u32(*map);
            }
            Operation::Write { map, key, at, bytes } => {
                self.u8(3);
                self.u32(*map);
                self.key(key);
                self.u32(*at);
                self.bytes(bytes);
            }
        }
    }

    pub(super) fn map(&mut self, map: &Map) {
        self.bytes(map.name.as_bytes());
        [map.kind.number(), map.key_size, map.value_size, map.max_entries]
            .into_iter()
            .for_each(|n| self.u32(n));
    }

    pub(super) fn digest(&mut self, digest: &Digest) {
        self.bytes(digest.name.as_bytes());
        self.u32(digest.size);
    }

    pub(super) fn map_error(&mut self, why: MapError) {
        let (kind, numbers) = match why {
            MapError::Full(most) => (0, [u64::from(most), 0, 0]),
            MapError::Absent => (1, [0; 3]),
            MapError::KeySize { given, wanted } => (2, [given as u64, wanted as u64, 0]),
            MapError::ValueSize { given, wanted } => (3, [given as u64, wanted as u64, 0]),
            MapError::Prefix { given, most } => (4, [u64::from(given), u64::from(most), 0]),
            MapError::Empty { from, to, mask } => (5, [from, to, mask]),
            MapError::Kind => (6, [0; 3]),
            MapError::NoMap => (7, [0; 3]),
        };
        self.u8(kind);
        numbers.into_iter().for_each(|number| self.u64(number));
    }
}

#[derive(Debug)]
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.fixed::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.fixed().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.fixed().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// Reads a sequence. Each item takes at least one byte, which bounds the length.
    pub(super) fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    pub(super) fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn key(&mut self) -> Option<Key> {
        match self.u8()? {
            0 => Some(Key::Bytes(self.bytes()?.to_vec())),
            1 => {
                let priority = self.u32()?;
                let word = |reader: &mut Self| {
                    let (mask, from, to) = (reader.u64()?, reader.u64()?, reader.u64()?);
                    Some(WordRange { mask, from, to })
                };
                Some(Key::Words(self.all(word)?, priority))
            }
            _ => None,
        }
    }

    pub(super) fn entry(&mut self) -> Option<Entry> {
        Some(Entry { map: self.u32()?, key: self.key()?, value: self.bytes()?.to_vec() })
    }

    pub(super) fn operation(&mut self) -> Option<Operation> {
        match self.u8()? {
            0 => Some(Operation::Put(self.entry()?)),
            1 => Some(Operation::Delete { map: self.u32()?, key: self.key()? }),
            2 => Some(Operation::Clear { map: self.u32()? }),
            3 => Some(Operation::Write {
                map: self.u32()?,
                key: self.key()?,
                at: self.u32()?,
                bytes: self.bytes()?.to_vec(),
            }),
            _ => None,
        }
    }

    /// Reads a map; `None` if its parameters are invalid.
    pub(super) fn map(&mut self) -> Option<Map> {
        let name = self.text()?;
        let kind = MapKind::from_number(self.u32()?)?;
        let (key_size, value_size, max_entries) = (self.u32()?, self.u32()?, self.u32()?);
        let map = Map { name, kind, key_size, value_size, max_entries };
        map.check().is_ok().then_some(map)
    }

    /// Reads a digest; `None` if its parameters are invalid.
    pub(super) fn digest(&mut self) -> Option<Digest> {
        let digest = Digest { name: self.text()?, size: self.u32()? };
        digest.check().is_ok().then_some(digest)
    }

    pub(super) fn map_error(&mut self) -> Option<MapError> {
        let kind = self.u8()?;
        let [one, two, three] = [self.u64()?, self.u64()?, self.u64()?];
        let size = |number: u64| usize::try_from(number).ok();
        let short = |number: u64| u32::try_from(number).ok();
        Some(match kind {
            0 => MapError::Full(short(one)?),
            1 => MapError::Absent,
            2 => MapError::KeySize { given: size(one)?, wanted: size(two)? },
            3 => MapError::ValueSize { given: size(one)?, wanted: size(two)? },
            4 => MapError::Prefix { given: short(one)?, most: short(two)? },
            5 => MapError::Empty { from: one, to: two, mask: three },
            6 => MapError::Kind,
            7 => MapError::NoMap,
            _ => return None,
        })
    }
}
