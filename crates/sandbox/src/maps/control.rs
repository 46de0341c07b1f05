//! Maps as the control plane sees them.

use p4::object::{Entry, Key, WordRange};

use super::{Entries, MapError, Store, TernaryKey};

/// The key of a ternary map's entry.
pub(super) fn rule(words: &[WordRange], priority: u32) -> TernaryKey {
    TernaryKey { words: words.to_vec(), priority }
}

/// A map of an instance, as the control plane sees it.
#[derive(Debug)]
pub struct MapRef<'i>(pub(crate) &'i mut Store);

impl MapRef<'_> {
    /// The value that a program would find with this key.
    #[cfg(test)]
    pub(crate) fn lookup(&self, key: &[u8]) -> Result<Option<&[u8]>, MapError> {
        self.0.check_key(key)?;
        Ok(self.0.find(key).map(|entry| self.0.values.get(entry)))
    }

    /// Gives a key a value, whether it has one or not. Of an LPM map the key is a prefix: its length in
    /// bits as a 32-bit number of this machine's byte order, and its bytes.
    ///
    /// # Errors
    ///
    /// A size is wrong, the map is full, an array has no such index, or the map is a ternary one.
    pub fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), MapError> {
        self.0.check_key(key)?;
        self.0.check_value(value)?;
        let entry = self.0.make(key)?;
        self.0.values.set(entry, value);
        Ok(())
    }

    /// Takes a key's entry away.
    ///
    /// # Errors
    ///
    /// The size is wrong, there is none, or the map is an array or a ternary one.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), MapError> {
        self.0.check_key(key)?;
        self.0.remove(key)
    }

    /// Puts an entry into a ternary map; one with the same key and priority gets the value.
    ///
    /// # Errors
    ///
    /// A size is wrong, nothing fits the key, the map is full, or no ternary one.
    pub(crate) fn insert(&mut self, key: &TernaryKey, value: &[u8]) -> Result<(), MapError> {
        self.0.check_value(value)?;
        let Entries::Ternary(ternary) = &mut self.0.entries else { return Err(MapError::Kind) };
        let entry = ternary.insert(key)?;
        self.0.values.set(entry, value);
        Ok(())
    }

    /// Takes an entry of a ternary map away.
    ///
    /// # Errors
    ///
    /// There is none, or the map is no ternary one.
    pub(crate) fn remove(&mut self, key: &TernaryKey) -> Result<(), MapError> {
        let Entries::Ternary(ternary) = &mut self.0.entries else { return Err(MapError::Kind) };
        ternary.remove(key)
    }

    /// Takes all entries away; an array's become zeros.
    pub fn clear(&mut self) {
        match &mut self.0.entries {
            Entries::Array(_) => self.0.values.clear(),
            Entries::Hash(hash) => hash.clear(),
            Entries::Lpm(lpm) => lpm.clear(),
            Entries::Ternary(ternary) => ternary.clear(),
        }
    }

    /// Puts an entry in as the compiler has made it: in place of one with the same key.
    ///
    /// # Errors
    ///
    /// A size is wrong, the map is full, its keys are others, or nothing fits the key.
    pub fn put(&mut self, entry: &Entry) -> Result<(), MapError> {
        match &entry.key {
            Key::Bytes(key) => self.update(key, &entry.value),
            Key::Words(words, priority) => self.insert(&rule(words, *priority), &entry.value),
        }
    }

    /// Puts an entry in, unless there is one with the same key: of what a program gives, the first
    /// counts (P4_16 specification, section 14.2.1.4). An array's entries are always there.
    pub(crate) fn put_first(&mut self, entry: &Entry) -> Result<(), MapError> {
        if let Key::Bytes(key) = &entry.key {
            self.0.check_key(key)?;
        }
        let is_there = match (&entry.key, &mut self.0.entries) {
            (_, Entries::Array(_)) => false,
            (Key::Bytes(key), Entries::Hash(hash)) => hash.find(key).is_some(),
            (Key::Bytes(key), Entries::Lpm(lpm)) => lpm.has(key),
            (Key::Words(words, priority), Entries::Ternary(ternary)) => {
                ternary.entry(&rule(words, *priority)).is_some()
            }
            _ => return Err(MapError::Kind),
        };
        if is_there { Ok(()) } else { self.put(entry) }
    }

    /// Keys and values, in an order that stays as long as no entry comes or goes. Of a ternary map,
    /// there are none.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (Vec<u8>, &[u8])> + '_> {
        let values = &self.0.values;
        match &self.0.entries {
            Entries::Array(array) => {
                Box::new((0..array.entries()).map(|at| (at.to_le_bytes().to_vec(), values.get(at))))
            }
            Entries::Hash(hash) => {
                Box::new(hash.entries().map(|(key, at)| (key.to_vec(), values.get(at))))
            }
            Entries::Lpm(lpm) => {
                Box::new(lpm.entries().map(|(key, at)| (key.to_vec(), values.get(at))))
            }
            Entries::Ternary(_) => Box::new(std::iter::empty()),
        }
    }

    /// A ternary map's entries, in the order in which they are tried; none of another map.
    #[cfg(test)]
    pub(crate) fn rules(&self) -> Box<dyn Iterator<Item = (TernaryKey, &[u8])> + '_> {
        match &self.0.entries {
            Entries::Ternary(ternary) => {
                Box::new(ternary.entries().map(|(key, at)| (key, self.0.values.get(at))))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}
