//! Initial map entries, in section `kaido.entries`, which other tools ignore. Each entry is
//!
//! ```text
//! u32 map; u32 priority; u32 key; u32 value   // lengths in bytes, little-endian
//! key, value
//! ```
//!
//! The key of a ternary map has three 64-bit words for each word of the map's key: mask, from, to.

use serde::{Deserialize, Serialize};

use super::{BadObject, MAX_KEY, Map, MapKind, bounded};

/// Maximum number of words in a ternary key.
const MAX_WORDS: usize = MAX_KEY as usize / 8;

/// Match for one word of a ternary key: under `mask`, it must be between `from` and `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WordRange {
    /// Bits to compare.
    pub mask: u64,
    /// Lower bound, inclusive.
    pub from: u64,
    /// Upper bound, inclusive.
    pub to: u64,
}

/// Key of a map entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Key {
    /// Key of an array, a hash or a trie.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Key of a ternary map, and its priority. The highest priority wins.
    Words(#[serde(deserialize_with = "bounded::<_, _, MAX_WORDS>")] Vec<WordRange>, u32),
}

/// A map entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Index of the map.
    pub map: u32,
    /// The key.
    pub key: Key,
    /// The value.
    #[serde(with = "serde_bytes")]
    pub value: Vec<u8>,
}

/// Maximum size of all entries in bytes.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of all entries. Each takes 600 bytes of a control plane.
const MAX_ENTRIES: usize = 1 << 16;
/// Size of an entry's header in bytes.
const HEAD: usize = 16;

impl Key {
    /// Returns the key of an array element: its index, in little-endian byte order.
    pub fn index(at: u32) -> Self {
        Self::Bytes(at.to_le_bytes().to_vec())
    }

    /// Returns the encoded key and its priority.
    fn encode(&self) -> (Vec<u8>, u32) {
        match self {
            Self::Bytes(bytes) => (bytes.clone(), 0),
            Self::Words(words, priority) => {
                let numbers = words.iter().flat_map(|word| [word.mask, word.from, word.to]);
                (numbers.flat_map(u64::to_le_bytes).collect(), *priority)
            }
        }
    }

    /// Decodes a key of this map.
    fn decode(map: &Map, bytes: &[u8], priority: u32) -> Option<Self> {
        let size = map.key_size as usize;
        if map.kind != MapKind::Ternary {
            return (bytes.len() == size).then(|| Self::Bytes(bytes.to_vec()));
        }
        let (words, rest) = bytes.as_chunks::<24>();
        if !rest.is_empty() || words.len() * 8 != size {
            return None;
        }
        let number = |word: &[u8; 24], at: usize| {
            let (eight, _) = word[at..].as_chunks::<8>();
            u64::from_le_bytes(eight[0])
        };
        let word = |word: &[u8; 24]| WordRange {
            mask: number(word, 0),
            from: number(word, 8),
            to: number(word, 16),
        };
        Some(Self::Words(words.iter().map(word).collect(), priority))
    }
}

/// Encodes entries.
pub(super) fn encode(entries: &[Entry]) -> Result<Vec<u8>, BadObject> {
    let mut bytes = Vec::new();
    if entries.len() > MAX_ENTRIES {
        let (what, count) = ("entries", entries.len());
        return Err(BadObject::TooMuch { what, count, most: MAX_ENTRIES });
    }
    for entry in entries {
        let (key, priority) = entry.key.encode();
        for number in [entry.map, priority, key.len() as u32, entry.value.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(key);
        bytes.extend(&entry.value);
    }
    check_size(&bytes)?;
    Ok(bytes)
}

fn check_size(bytes: &[u8]) -> Result<(), BadObject> {
    if bytes.len() <= MAX_BYTES {
        return Ok(());
    }
    let (what, count) = ("bytes of entries", bytes.len());
    Err(BadObject::TooMuch { what, count, most: MAX_BYTES })
}

/// Decodes entries of these maps. A map has at most as many as it has room for: a small object could
/// repeat an entry millions of times.
pub(super) fn decode(mut bytes: &[u8], maps: &[Map]) -> Result<Vec<Entry>, BadObject> {
    check_size(bytes)?;
    let mut entries = Vec::new();
    let mut room: Vec<u32> = maps.iter().map(|map| map.max_entries).collect();
    while !bytes.is_empty() {
        let cut = || BadObject::Elf("its entries are cut off".to_owned());
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or_else(cut)?;
        let mut numbers = [0; 4];
        for (number, four) in numbers.iter_mut().zip(head.as_chunks::<4>().0) {
            *number = u32::from_le_bytes(*four);
        }
        let [at, priority, key_length, value_length] = numbers;
        let map = maps.get(at as usize).ok_or(BadObject::Reference {
            at: 0,
            to: format!("map {at} by an entry, which is not there"),
        })?;
        let key = rest.get(..key_length as usize).ok_or_else(cut)?;
        let rest = &rest[key_length as usize..];
        let value = rest.get(..value_length as usize).ok_or_else(cut)?;
        bytes = &rest[value_length as usize..];
        let key = Key::decode(map, key, priority).filter(|_| value_length == map.value_size);
        let Some(key) = key else {
            let why = "an entry of it has another size".to_owned();
            return Err(BadObject::Map { map: map.name.clone(), why });
        };
        // The map exists.
        let left = &mut room[at as usize];
        *left = left.checked_sub(1).ok_or_else(|| BadObject::Map {
            map: map.name.clone(),
            why: format!("it has more than {} entries", map.max_entries),
        })?;
        if entries.len() == MAX_ENTRIES {
            let (what, count) = ("entries", entries.len() + 1);
            return Err(BadObject::TooMuch { what, count, most: MAX_ENTRIES });
        }
        entries.push(Entry { map: at, key, value: value.to_vec() });
    }
    Ok(entries)
}
