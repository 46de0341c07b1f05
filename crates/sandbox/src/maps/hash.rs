//! Hash map for exact keys: fixed size, open addressing. The hash function is keyed: without
//! measurements of the time of lookups, crafted packets cause no collisions.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::MapError;
use super::slots::Slots;

/// Hash table of keys of one size.
#[derive(Debug)]
pub(crate) struct Hash {
    seed: RandomState,
    /// 0 if empty; otherwise the upper bits of the hash, and the entry plus one below. At least
    /// twice as long as the number of entries.
    table: Box<[u64]>,
    keys: Box<[u8]>,
    key_size: usize,
    slots: Slots,
}

const ENTRY: u64 = u32::MAX as u64;

impl Hash {
    fn table_size(most: u32) -> usize {
        (most as usize * 2).next_power_of_two()
    }

    /// Memory in bytes, without the keys.
    pub(crate) fn overhead(most: u32) -> u64 {
        Self::table_size(most) as u64 * 8 + u64::from(most) * 5
    }

    pub(crate) fn new(key_size: usize, most: u32) -> Self {
        Self {
            seed: RandomState::default(),
            table: vec![0; Self::table_size(most)].into(),
            keys: vec![0; key_size * most as usize].into(),
            key_size,
            slots: Slots::new(most),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// Key of an existing entry.
    pub(super) fn key(&self, entry: u32) -> &[u8] {
        &self.keys[entry as usize * self.key_size..][..self.key_size]
    }

    /// Table position of a key, or the free position where it would be inserted. There is always a
    /// free one, because the table is at most half full.
    fn place(&self, key: &[u8]) -> (usize, u64) {
        let hash = self.hash(key);
        let mask = self.table.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            let found = self.table[at];
            let same = (found ^ hash) & !ENTRY == 0;
            if found == 0 || (same && self.key((found & ENTRY) as u32 - 1) == key) {
                return (at, hash);
            }
            at = (at + 1) & mask;
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let (at, _) = self.place(key);
        ((self.table[at] & ENTRY) as u32).checked_sub(1)
    }

    pub(crate) fn make(&mut self, key: &[u8]) -> Result<u32, MapError> {
        let (at, hash) = self.place(key);
        if let Some(entry) = ((self.table[at] & ENTRY) as u32).checked_sub(1) {
            return Ok(entry);
        }
        let entry = self.slots.take().ok_or(MapError::Full(self.slots.most()))?;
        self.keys[entry as usize * self.key_size..][..self.key_size].copy_from_slice(key);
        self.table[at] = (hash & !ENTRY) | u64::from(entry + 1);
        Ok(entry)
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), MapError> {
        let (mut hole, _) = self.place(key);
        let entry = ((self.table[hole] & ENTRY) as u32).checked_sub(1).ok_or(MapError::Absent)?;
        self.slots.give(entry);
        // Backward-shift deletion: move later entries of the probe sequence into the hole.
        let mask = self.table.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let found = self.table[at];
            if found == 0 {
                break;
            }
            let home = (found >> 32) as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.table[hole] = found;
                hole = at;
            }
        }
        self.table[hole] = 0;
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() as usize
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&[u8], u32)> + '_ {
        self.entries_from(0)
    }

    /// Entries in slots at or after `first`.
    pub(crate) fn entries_from(&self, first: u32) -> impl Iterator<Item = (&[u8], u32)> + '_ {
        self.slots.from(first).map(|entry| (self.key(entry), entry))
    }

    pub(crate) fn clear(&mut self) {
        self.table.fill(0);
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_table_reports_it_and_accepts_existing_keys() {
        let mut hash = Hash::new(1, 2);
        let (one, two) = (hash.make(&[1]).unwrap(), hash.make(&[2]).unwrap());
        assert_ne!(one, two);
        assert_eq!(hash.make(&[3]), Err(MapError::Full(2)));
        assert_eq!(hash.make(&[1]), Ok(one));
        assert_eq!(hash.remove(&[1]), Ok(()));
        assert_eq!(hash.remove(&[1]), Err(MapError::Absent));
        assert_eq!(hash.make(&[3]), Ok(one));
    }

    proptest! {
        /// Insertions and deletions behave like those of a `BTreeMap`.
        #[test]
        fn behaves_as_a_map(steps in prop::collection::vec((any::<bool>(), 0_u16..40), 0..300)) {
            let mut hash = Hash::new(2, 16);
            let mut model = BTreeMap::new();
            for (put, key) in steps {
                let bytes = key.to_ne_bytes();
                if put {
                    match hash.make(&bytes) {
                        Ok(entry) => prop_assert_eq!(*model.entry(key).or_insert(entry), entry),
                        Err(why) => {
                            prop_assert_eq!(why, MapError::Full(16));
                            prop_assert!(model.len() == 16 && !model.contains_key(&key));
                        }
                    }
                } else {
                    prop_assert_eq!(hash.remove(&bytes).is_ok(), model.remove(&key).is_some());
                }
                prop_assert_eq!(hash.len(), model.len());
                for key in 0_u16..40 {
                    prop_assert_eq!(hash.find(&key.to_ne_bytes()), model.get(&key).copied());
                }
                let mut entries: Vec<_> = model.values().copied().collect();
                entries.sort_unstable();
                prop_assert_eq!(hash.entries().map(|(_, at)| at).collect::<Vec<_>>(), entries);
            }
        }
    }
}
