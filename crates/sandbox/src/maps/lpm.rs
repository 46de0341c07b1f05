//! Longest-prefix match: one hash table of prefixes, probed once for each prefix length in use,
//! longest first. Tables use few lengths, so this takes fewer steps than a walk of a binary trie.

use std::cell::RefCell;

use super::MapError;
use super::hash::Hash;

/// Prefixes of keys of one size. A key is the prefix length in bits (32 bits), followed by the
/// bytes.
#[derive(Debug)]
pub(crate) struct Lpm {
    table: Hash,
    /// Number of prefixes of each length.
    counts: Box<[u32]>,
    /// Lengths in use, longest first. Capacity for all of them.
    lengths: Vec<u32>,
    /// Scratch buffer for masked keys. Programs run one at a time.
    scratch: RefCell<Box<[u8]>>,
    bits: u32,
}

/// Size of the prefix length in bytes.
const LENGTH: usize = 4;

/// Writes the first `length` bits of `key` to `to`, in the format of the table.
fn cut(key: &[u8], length: u32, to: &mut [u8]) {
    let (whole, rest) = (length as usize / 8, length % 8);
    let (head, bytes) = to.split_at_mut(LENGTH);
    head.copy_from_slice(&length.to_ne_bytes());
    bytes[..whole].copy_from_slice(&key[LENGTH..][..whole]);
    bytes[whole..].fill(0);
    if rest > 0 {
        bytes[whole] = key[LENGTH + whole] & !(0xff >> rest);
    }
}

/// Canonical form of a prefix, with zero host bits. Returns an invalid prefix unchanged.
pub(crate) fn canonical_prefix(key: &[u8]) -> Vec<u8> {
    let mut canonical = key.to_vec();
    if let Some((length, bytes)) = key.split_first_chunk::<LENGTH>() {
        let length = u32::from_ne_bytes(*length);
        if length as usize <= bytes.len() * 8 {
            cut(key, length, &mut canonical);
        }
    }
    canonical
}

impl Lpm {
    pub(crate) fn new(key_size: usize, most: u32) -> Self {
        let bits = (key_size - LENGTH) as u32 * 8;
        Self {
            table: Hash::new(key_size, most),
            counts: vec![0; bits as usize + 1].into(),
            lengths: Vec::with_capacity(bits as usize + 1),
            scratch: RefCell::new(vec![0; key_size].into()),
            bits,
        }
    }

    pub(crate) fn lengths(&self) -> usize {
        self.lengths.len()
    }

    /// Longest match of a key. All bits of the key are significant, independent of its length
    /// field.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let mut scratch = self.scratch.borrow_mut();
        self.lengths.iter().find_map(|length| {
            cut(key, *length, &mut scratch);
            self.table.find(&scratch)
        })
    }

    /// Prefix length of a key; leaves the canonical prefix in `scratch`.
    fn prefix(&mut self, key: &[u8]) -> Result<u32, MapError> {
        let mut length = [0; LENGTH];
        length.copy_from_slice(&key[..LENGTH]);
        let (given, most) = (u32::from_ne_bytes(length), self.bits);
        if given > most {
            return Err(MapError::Prefix { given, most });
        }
        cut(key, given, self.scratch.get_mut());
        Ok(given)
    }

    /// Returns true if exactly this prefix exists.
    pub(crate) fn has(&mut self, key: &[u8]) -> bool {
        self.exact(key).is_some()
    }

    /// Entry of exactly this prefix.
    pub(crate) fn exact(&mut self, key: &[u8]) -> Option<u32> {
        self.prefix(key).ok()?;
        self.table.find(self.scratch.get_mut())
    }

    pub(crate) fn make(&mut self, key: &[u8]) -> Result<u32, MapError> {
        let length = self.prefix(key)?;
        let before = self.table.len();
        let entry = self.table.make(self.scratch.get_mut())?;
        if self.table.len() > before {
            let count = &mut self.counts[length as usize];
            *count += 1;
            if *count == 1 {
                let at = self.lengths.partition_point(|other| *other > length);
                self.lengths.insert(at, length);
            }
        }
        Ok(entry)
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), MapError> {
        let length = self.prefix(key)?;
        self.table.remove(self.scratch.get_mut())?;
        let count = &mut self.counts[length as usize];
        *count -= 1;
        if *count == 0 {
            self.lengths.retain(|other| *other != length);
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&[u8], u32)> + '_ {
        self.entries_from(0)
    }

    /// Entries in slots at or after `first`.
    pub(crate) fn entries_from(&self, first: u32) -> impl Iterator<Item = (&[u8], u32)> + '_ {
        self.table.entries_from(first)
    }

    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.counts.fill(0);
        self.lengths.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(length: u32, bytes: [u8; 2]) -> [u8; 6] {
        let mut key = [0; 6];
        key[..4].copy_from_slice(&length.to_ne_bytes());
        key[4..].copy_from_slice(&bytes);
        key
    }

    #[test]
    fn the_longest_prefix_is_found() {
        let mut lpm = Lpm::new(6, 4);
        let all = lpm.make(&key(0, [9, 9])).unwrap();
        let ten = lpm.make(&key(8, [10, 77])).unwrap();
        let odd = lpm.make(&key(11, [10, 0b0101_1111])).unwrap();
        // Host bits are ignored.
        assert_eq!(lpm.make(&key(8, [10, 1])), Ok(ten));
        assert_eq!(lpm.find(&key(16, [10, 0b0100_0000])), Some(odd));
        assert_eq!(lpm.find(&key(3, [10, 0b0110_0000])), Some(ten));
        assert_eq!(lpm.find(&key(0, [11, 0])), Some(all));
        assert_eq!(lpm.make(&key(17, [0, 0])), Err(MapError::Prefix { given: 17, most: 16 }));
        assert_eq!(lpm.remove(&key(0, [0, 0])), Ok(()));
        assert_eq!(lpm.find(&key(0, [11, 0])), None);
        assert_eq!(lpm.remove(&key(0, [0, 0])), Err(MapError::Absent));
    }

    proptest! {
        /// Lookups return the same as a linear search of all prefixes.
        #[test]
        fn lookups_match_a_linear_search(
            steps in prop::collection::vec((any::<bool>(), 0_u32..=16, any::<[u8; 2]>()), 0..60),
            asked in prop::collection::vec(any::<[u8; 2]>(), 20),
        ) {
            let mut lpm = Lpm::new(6, 64);
            let mut model = std::collections::BTreeMap::new();
            let top = |length: u32, bytes: [u8; 2]| {
                let all = u16::from_be_bytes(bytes);
                if length == 0 { 0 } else { all & !(0xffff_u32 >> length) as u16 }
            };
            for (put, length, bytes) in steps {
                let prefix = (length, top(length, bytes));
                if put {
                    let entry = lpm.make(&key(length, bytes)).unwrap();
                    prop_assert_eq!(*model.entry(prefix).or_insert(entry), entry);
                } else {
                    prop_assert_eq!(lpm.remove(&key(length, bytes)).is_ok(), model.remove(&prefix).is_some());
                }
            }
            for bytes in asked {
                let wanted = (0..=16).rev().find_map(|length| model.get(&(length, top(length, bytes))));
                prop_assert_eq!(lpm.find(&key(16, bytes)), wanted.copied());
            }
        }
    }
}
