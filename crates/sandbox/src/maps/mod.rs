//! Maps: what a program keeps between packets, and what the control plane tells it.
//!
//! All memory is taken when a map is made: nothing is allocated while programs run. Values stay where
//! they are as long as their entry is there.

mod array;
mod change;
mod control;
mod hash;
mod lpm;
mod slots;
mod ternary;
mod tuples;
mod values;

use std::ptr::NonNull;

use p4::object::{Map, MapKind};

use crate::error::LoadError;
use array::Array;
use hash::Hash;
use lpm::Lpm;
use ternary::Ternary;
use values::Values;

pub use control::MapRef;
pub(crate) use lpm::canonical_prefix;
pub(crate) use ternary::TernaryKey;

/// Why a map cannot do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// There is no room for another entry.
    #[error("the map is full: it has {0} entries")]
    Full(u32),
    /// There is no such entry.
    #[error("there is no such entry")]
    Absent,
    /// A key of the wrong size.
    #[error("a key of {given} bytes, where {wanted} are wanted")]
    KeySize {
        /// What there is.
        given: usize,
        /// What is wanted.
        wanted: usize,
    },
    /// A value of the wrong size.
    #[error("a value of {given} bytes, where {wanted} are wanted")]
    ValueSize {
        /// What there is.
        given: usize,
        /// What is wanted.
        wanted: usize,
    },
    /// A prefix that is longer than its key.
    #[error("a prefix of {given} bits, where {most} are the most")]
    Prefix {
        /// What there is.
        given: u32,
        /// The most there may be.
        most: u32,
    },
    /// An entry whose range has nothing in it.
    #[error("an entry that nothing fits: from {from:#x} to {to:#x} under mask {mask:#x}")]
    Empty {
        /// The range's begin.
        from: u64,
        /// The range's end.
        to: u64,
        /// The mask.
        mask: u64,
    },
    /// Something that this kind of map does not do.
    #[error("this kind of map does not do that")]
    Kind,
    /// There is no map of this name.
    #[error("there is no such map")]
    NoMap,
}

/// The power of two that a map's values have as their distance.
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

/// How entries are found.
#[derive(Debug)]
pub(crate) enum Entries {
    Array(Array),
    Hash(Hash),
    Lpm(Lpm),
    Ternary(Ternary),
}

impl Store {
    /// Bytes that a map takes, about.
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

    /// Where bytes of values are in memory.
    pub(crate) fn place(&mut self, offset: u64, size: u64) -> Option<NonNull<u8>> {
        self.values.place(offset, size)
    }

    /// What the next look for a key costs beyond a helper's call, in instructions.
    pub(crate) fn cost(&self) -> u64 {
        let key = self.key_size as u64 / 8;
        match &self.entries {
            Entries::Array(_) => 0,
            Entries::Hash(_) => 8 + key,
            Entries::Lpm(lpm) => lpm.lengths() as u64 * (8 + key),
            Entries::Ternary(ternary) => ternary.cost(),
        }
    }

    /// The entry that a key of the right size finds.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        match &self.entries {
            Entries::Array(array) => array.find(key),
            Entries::Hash(hash) => hash.find(key),
            Entries::Lpm(lpm) => lpm.find(key),
            Entries::Ternary(ternary) => ternary.find(key),
        }
    }

    /// The entry of this very key, which is made if it is not there.
    pub(crate) fn make(&mut self, key: &[u8]) -> Result<u32, MapError> {
        match &mut self.entries {
            Entries::Array(array) => array.find(key).ok_or(MapError::Absent),
            Entries::Hash(hash) => hash.make(key),
            Entries::Lpm(lpm) => lpm.make(key),
            Entries::Ternary(_) => Err(MapError::Kind),
        }
    }

    /// Takes the entry of this very key away. An array's entries are always there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), MapError> {
        match &mut self.entries {
            Entries::Array(_) | Entries::Ternary(_) => Err(MapError::Kind),
            Entries::Hash(hash) => hash.remove(key),
            Entries::Lpm(lpm) => lpm.remove(key),
        }
    }

    /// Puts in order what the control plane has changed.
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
