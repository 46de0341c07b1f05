//! Reversible changes to maps.

use p4_object::{Entry, Key};

use super::control::{MapRef, rule};
use super::{Entries, MapError, Ternary, TernaryKey};
use crate::control::{Operation, Piece};

/// Inverse of a change.
#[derive(Debug)]
pub(crate) enum Undo {
    /// Delete an inserted entry.
    Delete(Key),
    /// Restore a value, or a deleted entry.
    Put(Key, Vec<u8>),
    /// Restore bytes of a value from this offset on.
    Part(Key, u32, Vec<u8>),
    /// Restore entries of a ternary map at their insertion times.
    PutBack(Vec<(u64, TernaryKey, Vec<u8>)>),
    /// Restore consecutive values of an array from this index on, in one piece.
    Values(u32, Vec<u8>),
    /// Nothing has changed, or an earlier step of the batch restores it.
    Nothing,
    /// Restore all entries of a cleared map.
    Fill(Vec<Entry>),
}

/// Converts a ternary key to the format of objects.
fn words(key: TernaryKey) -> Key {
    Key::Words(key.words, key.priority)
}

impl MapRef<'_> {
    /// Applies a change and returns its inverse. `saved`: number of the first values of an array that
    /// the inverses of earlier changes restore.
    pub(crate) fn change(
        &mut self,
        operation: &Operation,
        saved: &mut u32,
    ) -> Result<Undo, MapError> {
        match operation {
            Operation::Put(entry) => {
                let before = self.value(&entry.key)?.map(<[u8]>::to_vec);
                self.put(entry)?;
                let key = entry.key.clone();
                Ok(before.map_or(Undo::Delete(key.clone()), |value| Undo::Put(key, value)))
            }
            Operation::Delete { key, .. } => {
                let before = self.value(key)?.map(<[u8]>::to_vec);
                let came = self.came(key);
                match (self.take(key), &before) {
                    // The program may have deleted it.
                    (Err(MapError::Absent), None) => return Ok(Undo::Nothing),
                    (taken, _) => taken?,
                }
                let value = before.ok_or(MapError::Absent)?;
                Ok(match (key, came) {
                    (Key::Words(words, priority), Some(came)) => {
                        Undo::PutBack(vec![(came, rule(words, *priority), value)])
                    }
                    _ => Undo::Put(key.clone(), value),
                })
            }
            Operation::Write { key, at, bytes, .. } => {
                let before = self.write(key, *at, bytes)?;
                Ok(Undo::Part(key.clone(), *at, before))
            }
            Operation::Fill { count, value, .. } => {
                let undo = self.save(0, *count, saved)?;
                let (given, wanted) = (value.len(), self.0.values.size());
                if given != wanted {
                    return Err(MapError::ValueSize { given, wanted });
                }
                (0..*count).for_each(|at| self.0.values.set(at, value));
                Ok(undo)
            }
            Operation::Values { first, bytes, .. } => {
                let (given, wanted) = (bytes.len(), self.0.values.size());
                if !matches!(self.0.entries, Entries::Array(_)) {
                    return Err(MapError::Kind);
                }
                if wanted == 0 || given % wanted != 0 {
                    return Err(MapError::ValueSize { given, wanted });
                }
                let count = u32::try_from(given / wanted).map_err(|_| MapError::Absent)?;
                let undo = self.save(*first, count, saved)?;
                self.set_from(*first, bytes);
                Ok(undo)
            }
            Operation::Clear { .. } => {
                let undo = match &self.0.entries {
                    Entries::Array(array) => self.save(0, array.entries(), saved)?,
                    Entries::Ternary(ternary) => Undo::PutBack(self.all(ternary)),
                    _ => Undo::Fill(self.piece(0, 0, usize::MAX).entries),
                };
                self.clear();
                Ok(undo)
            }
        }
    }

    /// Reverts a change. There is room for every entry that existed before it.
    pub(crate) fn undo(&mut self, step: Undo) {
        let done = match step {
            Undo::Delete(key) => self.take(&key),
            Undo::Put(key, value) => self.put(&Entry { map: 0, key, value }),
            Undo::Part(key, at, bytes) => self.write(&key, at, &bytes).map(drop),
            Undo::PutBack(all) => {
                all.iter().try_for_each(|(came, key, value)| self.put_back(*came, key, value))
            }
            Undo::Values(first, all) => {
                self.set_from(first, &all);
                Ok(())
            }
            Undo::Nothing => Ok(()),
            Undo::Fill(all) => {
                self.clear();
                all.iter().try_for_each(|entry| self.put(entry))
            }
        };
        debug_assert_eq!(done, Ok(()), "what was there has room");
    }

    /// Returns the value of the entry with exactly this key.
    ///
    /// # Errors
    ///
    /// Fails if the key does not have the map's format.
    pub fn value(&mut self, key: &Key) -> Result<Option<&[u8]>, MapError> {
        let store = &mut *self.0;
        let entry = match (key, &mut store.entries) {
            (Key::Words(words, priority), Entries::Ternary(ternary)) => {
                ternary.entry(&rule(words, *priority))
            }
            (Key::Words(..), _) | (Key::Bytes(_), Entries::Ternary(_)) => {
                return Err(MapError::Kind);
            }
            (Key::Bytes(key), entries) => {
                let (given, wanted) = (key.len(), store.key_size);
                if given != wanted {
                    return Err(MapError::KeySize { given, wanted });
                }
                match entries {
                    Entries::Array(array) => array.find(key),
                    Entries::Hash(hash) => hash.find(key),
                    Entries::Lpm(lpm) => lpm.exact(key),
                    Entries::Ternary(_) => None,
                }
            }
        };
        Ok(entry.map(|entry| store.values.get(entry)))
    }

    /// Returns up to `most` entries, starting at slot `from`, as entries of map `map`, and the next
    /// slot.
    pub(crate) fn piece(&self, map: u32, from: u32, most: usize) -> Piece {
        let values = &self.0.values;
        let bytes = |key: &[u8]| Key::Bytes(key.to_vec());
        let all: Box<dyn Iterator<Item = (u32, Key, u32)> + '_> = match &self.0.entries {
            Entries::Array(array) => {
                Box::new((from..array.entries()).map(move |at| (at, Key::index(at), at)))
            }
            Entries::Hash(hash) => {
                Box::new(hash.entries_from(from).map(move |(key, at)| (at, bytes(key), at)))
            }
            Entries::Lpm(lpm) => {
                Box::new(lpm.entries_from(from).map(move |(key, at)| (at, bytes(key), at)))
            }
            Entries::Ternary(ternary) => {
                let rules = (from..).zip(ternary.entries_from(from as usize));
                Box::new(rules.map(|(place, (key, at))| (place, words(key), at)))
            }
        };
        let mut piece = Piece::default();
        for (place, key, at) in all {
            if piece.entries.len() == most {
                piece.next = Some(place);
                break;
            }
            piece.entries.push(Entry { map, key, value: values.get(at).to_vec() });
        }
        piece
    }

    /// Saves `count` values of an array for undo, unless they are among the first `saved`.
    fn save(&self, first: u32, count: u32, saved: &mut u32) -> Result<Undo, MapError> {
        let Entries::Array(array) = &self.0.entries else { return Err(MapError::Kind) };
        let end = first.checked_add(count).filter(|end| *end <= array.entries());
        let end = end.ok_or(MapError::Absent)?;
        if end <= *saved {
            return Ok(Undo::Nothing);
        }
        let mut from = first;
        if first <= *saved {
            (from, *saved) = (*saved, end);
        }
        let mut all = Vec::with_capacity((end - from) as usize * self.0.values.size());
        (from..end).for_each(|at| all.extend_from_slice(self.0.values.get(at)));
        Ok(Undo::Values(from, all))
    }

    /// Writes a part of a value, and returns the former bytes.
    fn write(&mut self, key: &Key, at: u32, bytes: &[u8]) -> Result<Vec<u8>, MapError> {
        let mut value = self.value(key)?.ok_or(MapError::Absent)?.to_vec();
        let (start, wanted) = (at as usize, value.len());
        let given = start.saturating_add(bytes.len());
        let part = value.get_mut(start..given).ok_or(MapError::ValueSize { given, wanted })?;
        let before = part.to_vec();
        part.copy_from_slice(bytes);
        self.put(&Entry { map: 0, key: key.clone(), value })?;
        Ok(before)
    }

    /// Sets consecutive values of an array, which exist.
    fn set_from(&mut self, first: u32, values: &[u8]) {
        let size = self.0.values.size().max(1);
        (first..).zip(values.chunks(size)).for_each(|(at, value)| self.0.values.set(at, value));
    }

    fn take(&mut self, key: &Key) -> Result<(), MapError> {
        match key {
            Key::Bytes(key) => self.delete(key),
            Key::Words(words, priority) => self.remove(&rule(words, *priority)),
        }
    }

    /// Insertion time of an entry of a ternary map.
    fn came(&self, key: &Key) -> Option<u64> {
        match (key, &self.0.entries) {
            (Key::Words(words, priority), Entries::Ternary(ternary)) => {
                ternary.came(&rule(words, *priority))
            }
            _ => None,
        }
    }

    /// All entries of a ternary map with their insertion times.
    fn all(&self, ternary: &Ternary) -> Vec<(u64, TernaryKey, Vec<u8>)> {
        let value = |entry| self.0.values.get(entry).to_vec();
        let all = ternary.entries();
        all.filter_map(|(key, entry)| Some((ternary.came(&key)?, key, value(entry)))).collect()
    }

    fn put_back(&mut self, came: u64, key: &TernaryKey, value: &[u8]) -> Result<(), MapError> {
        let Entries::Ternary(ternary) = &mut self.0.entries else { return Err(MapError::Kind) };
        let entry = ternary.put_back(came, key)?;
        self.0.values.set(entry, value);
        Ok(())
    }
}
