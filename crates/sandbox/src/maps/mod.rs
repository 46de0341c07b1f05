//! Maps: the state of a program between packets, and its tables.
//!
//! All memory is allocated when a map is created; nothing is allocated while programs run. A value
//! does not move as long as its entry exists.

mod array;
mod change;
mod control;
pub(crate) mod error;
mod hash;
mod lpm;
mod slots;
mod ternary;
mod tuples;
mod values;

use std::ptr::NonNull;

use p4_object::{Map, MapKind};

use crate::error::LoadError;
use array::Array;
use hash::Hash;
use lpm::Lpm;
use ternary::Ternary;
use values::Values;

pub(crate) use change::Undo;
pub use control::MapRef;
pub use error::MapError;
pub(crate) use lpm::canonical_prefix;
pub(crate) use ternary::TernaryKey;

/// Stride of a map's values, as a power of two.
pub(crate) fn value_shift(map: &Map) -> u32 {
    Values::shift(map.value_size)
}

/// A map with its entries.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) entries: Entries,
    pub(crate) values: Values,
    pub(crate) key_size: usize,
}

/// Lookup structure of a map.
#[derive(Debug)]
pub(crate) enum Entries {
    Array(Array),
    Hash(Hash),
    Lpm(Lpm),
    Ternary(Ternary),
}

impl Store {
    /// Approximate memory of a map in bytes.
    pub(crate) fn needed(map: &Map) -> u64 {
        let entries = u64::from(map.max_entries);
        let key = u64::from(map.key_size);
        let values = entries << Values::shift(map.value_size);
        values
            + match map.kind {
                MapKind::Array => 0,
                MapKind::Hash | MapKind::LpmTrie => entries * key + Hash::overhead(map.max_entries),
                MapKind::Ternary => Ternary::needed(map.key_size, map.max_entries),
            }
    }

    pub(crate) fn new(map: &Map) -> Result<Self, LoadError> {
        let key_size = map.key_size as usize;
        let values = Values::new(map)?;
        let entries = match map.kind {
            MapKind::Array => Entries::Array(Array::new(map.max_entries)),
            MapKind::Hash => Entries::Hash(Hash::new(key_size, map.max_entries)),
            MapKind::LpmTrie => Entries::Lpm(Lpm::new(key_size, map.max_entries)),
            MapKind::Ternary => Entries::Ternary(Ternary::new(key_size, map.max_entries)),
        };
        Ok(Self { entries, values, key_size })
    }

    /// Address of bytes of a value.
    pub(crate) fn place(&mut self, offset: u64, size: u64) -> Option<NonNull<u8>> {
        self.values.place(offset, size)
    }

    /// Cost of the next lookup beyond the helper call, in instructions.
    pub(crate) fn cost(&self) -> u64 {
        let key = self.key_size as u64 / 8;
        match &self.entries {
            Entries::Array(_) => 0,
            Entries::Hash(_) => 8 + key,
            // Also without entries, a key is hashed to delete it.
            Entries::Lpm(lpm) => lpm.lengths().max(1) as u64 * (8 + key),
            Entries::Ternary(ternary) => ternary.cost(),
        }
    }

    /// Looks up a key of the correct size.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        match &self.entries {
            Entries::Array(array) => array.find(key),
            Entries::Hash(hash) => hash.find(key),
            Entries::Lpm(lpm) => lpm.find(key),
            Entries::Ternary(ternary) => ternary.find(key),
        }
    }

    /// Entry of exactly this key; inserted if it does not exist.
    pub(crate) fn make(&mut self, key: &[u8]) -> Result<u32, MapError> {
        match &mut self.entries {
            Entries::Array(array) => array.find(key).ok_or(MapError::Absent),
            Entries::Hash(hash) => hash.make(key),
            Entries::Lpm(lpm) => lpm.make(key),
            Entries::Ternary(_) => Err(MapError::Kind),
        }
    }

    /// Deletes the entry of exactly this key. Array entries cannot be deleted.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), MapError> {
        match &mut self.entries {
            Entries::Array(_) | Entries::Ternary(_) => Err(MapError::Kind),
            Entries::Hash(hash) => hash.remove(key),
            Entries::Lpm(lpm) => lpm.remove(key),
        }
    }

    /// Rebuilds the index after changes by the control plane.
    pub(crate) fn settle(&mut self) {
        if let Entries::Ternary(ternary) = &mut self.entries {
            ternary.settle();
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<(), MapError> {
        let (given, wanted) = (key.len(), self.key_size);
        if given == wanted { Ok(()) } else { Err(MapError::KeySize { given, wanted }) }
    }

    fn check_value(&self, value: &[u8]) -> Result<(), MapError> {
        let (given, wanted) = (value.len(), self.values.size());
        if given == wanted { Ok(()) } else { Err(MapError::ValueSize { given, wanted }) }
    }
}
