//! Control-plane access to the maps of a running program, in this process ([`Instance`]) or in a
//! sandbox process.

use std::collections::HashMap;

use p4_object::{Entry, Key, Map, WordRange};
use serde::{Deserialize, Serialize};

use crate::instance::Instance;
use crate::maps::{MapError, Undo};
use p4_object::bounded;

/// A change to a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// Inserts an entry or replaces its value. In an array, the entry always exists.
    Put(Entry),
    /// Deletes the entry with exactly this key. Fails for arrays: their entries cannot be deleted.
    Delete {
        /// Index of the map in the program.
        map: u32,
        /// The key.
        key: Key,
    },
    /// Overwrites part of an entry's value. The other bytes keep the program's current data.
    Write {
        /// Index of the map in the program.
        map: u32,
        /// The key.
        key: Key,
        /// Offset of the first byte to write.
        at: u32,
        /// New bytes.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Sets the first values of an array to one value. Fails for other maps.
    Fill {
        /// Index of the map in the program.
        map: u32,
        /// Number of values.
        count: u32,
        /// The value.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
    },
    /// Sets consecutive values of an array. Fails for other maps.
    Values {
        /// Index of the map in the program.
        map: u32,
        /// Index of the first value.
        first: u32,
        /// The values, one after the other.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Deletes all entries; an array's values become zero.
    Clear {
        /// Index of the map in the program.
        map: u32,
    },
}

impl Operation {
    /// Index of the map that the operation changes.
    pub fn map(&self) -> u32 {
        match self {
            Self::Put(entry) => entry.map,
            Self::Delete { map, .. }
            | Self::Write { map, .. }
            | Self::Fill { map, .. }
            | Self::Values { map, .. }
            | Self::Clear { map } => *map,
        }
    }

    /// Size of its key and value in bytes. In a message, it takes at most this and some 20 bytes.
    pub fn size(&self) -> usize {
        let of_key = |key: &Key| match key {
            Key::Bytes(key) => key.len(),
            Key::Words(words, _) => words.len() * size_of::<WordRange>(),
        };
        match self {
            Self::Put(entry) => of_key(&entry.key) + entry.value.len(),
            Self::Delete { key, .. } => of_key(key),
            Self::Write { key, bytes, .. } => of_key(key) + bytes.len(),
            Self::Fill { value: bytes, .. } | Self::Values { bytes, .. } => bytes.len(),
            Self::Clear { .. } => 0,
        }
    }

    /// Sets consecutive values of an array to those of these entries. Returns `None` if all are zero, as
    /// they are after [`Operation::Clear`]. One `Put` for each value has an overhead of some 300 bytes.
    pub fn nonzero_values(map: u32, first: u32, entries: &[Entry]) -> Option<Self> {
        let bytes: Vec<u8> = entries.iter().flat_map(|entry| &entry.value).copied().collect();
        let is_zero = bytes.iter().all(|byte| *byte == 0);
        (!is_zero).then_some(Self::Values { map, first, bytes })
    }

    /// Returns the same operation for another map.
    pub(crate) fn on(mut self, other: u32) -> Self {
        match &mut self {
            Self::Put(entry) => entry.map = other,
            Self::Delete { map, .. }
            | Self::Write { map, .. }
            | Self::Fill { map, .. }
            | Self::Values { map, .. }
            | Self::Clear { map } => *map = other,
        }
        self
    }
}

/// Maximum number of entries that a sandbox process returns at once.
pub const MAX_PIECE: usize = 1024;

/// A batch of entries read from a map.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Piece {
    /// The entries. Those of a ternary map are in match order.
    #[serde(deserialize_with = "bounded::<_, _, MAX_PIECE>")]
    pub entries: Vec<Entry>,
    /// Cursor for the next read; `None` after the last entry.
    pub next: Option<u32>,
}

/// Errors of map operations.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A map rejected an operation of a batch. The whole batch was rolled back.
    #[error("operation {at} of the batch: {why}")]
    Operation {
        /// Index of the operation in the batch, from 0.
        at: usize,
        /// Reason for the rejection.
        #[source]
        why: MapError,
    },
    /// A map rejected a read.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The program's process has exited and its replacement is not ready, or it did not answer in
    /// time. It is unknown if a batch in flight was applied: a restarted process gets the journal
    /// replayed.
    #[error("the program's process does not respond")]
    Gone,
    /// The program's process failed too often and will not be restarted.
    #[error("the program failed too often and was evicted: install it again, or another one")]
    Evicted,
    /// The message exceeds the maximum size.
    #[error("a message of {0} bytes is too large for the program's process")]
    TooLarge(usize),
}

/// The maps of a running program. Each operation runs between two packets.
pub trait Maps {
    /// The program's maps.
    fn maps(&self) -> &[Map];

    /// Applies all operations in order, or none of them. No packet sees a partial batch.
    ///
    /// # Errors
    ///
    /// Returns the first operation that failed, with the reason.
    fn apply(&mut self, batch: &[Operation]) -> Result<(), ControlError>;

    /// Returns up to `most` entries of a map, starting at the cursor `from`: 0, or `next` of the
    /// previous piece. An entry that is present during the whole scan can be missed or read twice
    /// only if other entries are inserted or deleted in between.
    ///
    /// # Errors
    ///
    /// Fails if the map does not exist.
    fn read(&mut self, map: u32, from: u32, most: u32) -> Result<Piece, ControlError>;

    /// Returns the values of the entries with exactly these keys, in the same order. For an LPM map
    /// this is an exact match of the prefix, not the longest match. A sandbox process gets one
    /// request for each [`MAX_PIECE`] keys.
    ///
    /// # Errors
    ///
    /// Fails if the map does not exist, or if a key does not have the map's format.
    fn get_all(&mut self, map: u32, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, ControlError>;

    /// Returns the value of the entry with exactly this key, like [`get_all`](Self::get_all).
    ///
    /// # Errors
    ///
    /// Fails if the map does not exist, or if the key does not have the map's format.
    fn get(&mut self, map: u32, key: &Key) -> Result<Option<Vec<u8>>, ControlError> {
        Ok(self.get_all(map, std::slice::from_ref(key))?.pop().flatten())
    }
}

impl Instance {
    /// Applies all operations, or none of them, and returns their inverses, each with its map.
    fn change(&mut self, batch: &[Operation]) -> Result<Vec<(u32, Undo)>, ControlError> {
        let mut undo = Vec::with_capacity(batch.len());
        // Length of the prefix of each array that `undo` restores. An array is saved once, or a short batch
        // would take the memory of many arrays.
        let mut saved = HashMap::new();
        for (at, operation) in batch.iter().enumerate() {
            let map = operation.map();
            let done = self.map_at(map as usize).and_then(|mut map| {
                map.change(operation, saved.entry(operation.map()).or_insert(0))
            });
            match done {
                Ok(step) => undo.push((map, step)),
                Err(why) => {
                    for (map, step) in undo.into_iter().rev() {
                        // The map existed when the step was applied.
                        if let Ok(mut map) = self.map_at(map as usize) {
                            map.undo(step);
                        }
                    }
                    return Err(ControlError::Operation { at, why });
                }
            }
        }
        Ok(undo)
    }
}

impl Maps for Instance {
    fn maps(&self) -> &[Map] {
        self.program().maps()
    }

    fn apply(&mut self, batch: &[Operation]) -> Result<(), ControlError> {
        self.change(batch).map(drop)
    }

    fn read(&mut self, map: u32, from: u32, most: u32) -> Result<Piece, ControlError> {
        let store = self.map_at(map as usize)?;
        Ok(store.piece(map, from, (most as usize).max(1)))
    }

    fn get_all(&mut self, map: u32, keys: &[Key]) -> Result<Vec<Option<Vec<u8>>>, ControlError> {
        let mut map = self.map_at(map as usize)?;
        let values = keys.iter().map(|key| Ok(map.value(key)?.map(<[u8]>::to_vec)));
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use p4_object::{Instruction, MapKind, Object, WordRange, opcode};

    use super::*;
    use crate::program::{Limits, Program};

    fn instance() -> Instance {
        let map = |name: &str, kind, key_size, max_entries| Map {
            name: name.to_owned(),
            kind,
            key_size,
            value_size: 4,
            max_entries,
        };
        let code = vec![
            Instruction { opcode: 0xb7, immediate: 1, ..Instruction::default() },
            Instruction { opcode: opcode::EXIT, ..Instruction::default() },
        ];
        let maps = vec![
            map("array", MapKind::Array, 4, 3),
            map("hash", MapKind::Hash, 2, 2),
            map("lpm", MapKind::LpmTrie, 8, 4),
            map("ternary", MapKind::Ternary, 8, 4),
        ];
        let object = Object { code, maps, ..Object::default() };
        Instance::new(&Program::load(&object, &Limits::default()).unwrap()).unwrap()
    }

    fn put(map: u32, key: Key, value: u32) -> Operation {
        Operation::Put(Entry { map, key, value: value.to_ne_bytes().to_vec() })
    }

    fn bytes(key: &[u8]) -> Key {
        Key::Bytes(key.to_vec())
    }

    fn prefix(length: u32, address: [u8; 4]) -> Key {
        Key::Bytes([length.to_ne_bytes(), address].concat())
    }

    fn word(value: u64, priority: u32) -> Key {
        Key::Words(vec![WordRange { mask: u64::MAX, from: value, to: value }], priority)
    }

    fn all(instance: &mut Instance) -> Vec<Vec<Entry>> {
        let sorted = |map: u32, instance: &mut Instance| {
            let mut entries = instance.read(map, 0, u32::MAX).unwrap().entries;
            if map != 3 {
                entries.sort_by_key(|entry| format!("{:?}", entry.key));
            }
            entries
        };
        (0..4).map(|map| sorted(map, instance)).collect()
    }

    fn filled() -> Instance {
        let mut instance = instance();
        let batch = [
            put(0, bytes(&1_u32.to_ne_bytes()), 7),
            put(1, bytes(b"ab"), 1),
            put(2, prefix(8, [10, 0, 0, 0]), 8),
            put(2, prefix(16, [10, 1, 0, 0]), 16),
            put(3, word(1, 5), 1),
            put(3, word(2, 5), 2),
            put(3, word(3, 5), 3),
        ];
        instance.apply(&batch).unwrap();
        instance
    }

    #[test]
    fn a_fill_sets_the_first_values() {
        let mut instance = filled();
        instance.apply(&[Operation::Fill { map: 0, count: 3, value: vec![1; 4] }]).unwrap();
        instance.apply(&[Operation::Fill { map: 0, count: 2, value: vec![2; 4] }]).unwrap();
        let piece = instance.read(0, 0, 10).unwrap();
        let values: Vec<u8> = piece.entries.iter().map(|entry| entry.value[3]).collect();
        assert_eq!(values, [2, 2, 1]);
    }

    #[test]
    fn consecutive_values_are_set() {
        let mut instance = filled();
        let values =
            |first, bytes: &[u8]| Operation::Values { map: 0, first, bytes: bytes.to_vec() };
        instance.apply(&[values(1, &[1, 1, 1, 1, 2, 2, 2, 2])]).unwrap();
        let piece = instance.read(0, 0, 10).unwrap();
        let all: Vec<u8> = piece.entries.iter().map(|entry| entry.value[3]).collect();
        assert_eq!(all, [0, 1, 2]);
    }

    /// An atomic batch that changes an array as a whole many times takes the memory of one copy.
    #[test]
    fn an_array_is_saved_once_for_a_batch() {
        let mut instance = filled();
        let fill = |count, value| Operation::Fill { map: 0, count, value: vec![value; 4] };
        let batch = [fill(2, 1), fill(2, 2), fill(3, 3), Operation::Clear { map: 0 }];
        let steps = instance.change(&batch).unwrap();
        let bytes = |(_, step): &(u32, Undo)| match step {
            Undo::Values(first, bytes) => Some((*first, bytes.len())),
            _ => None,
        };
        let saved: Vec<_> = steps.iter().filter_map(bytes).collect();
        assert_eq!(saved, [(0, 8), (2, 4)]);
        // Of a value that is written in part, the part.
        let key = Key::index(1);
        let write = Operation::Write { map: 0, key, at: 3, bytes: vec![9] };
        let steps = instance.change(&[write]).unwrap();
        let [(0, Undo::Part(_, 3, bytes))] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(bytes.len(), 1);
    }

    /// Undo restores every kind of change, including the order of ternary entries.
    #[test]
    fn a_batch_that_fails_leaves_nothing() {
        let mut instance = filled();
        let before = all(&mut instance);
        let batch = [
            put(0, bytes(&1_u32.to_ne_bytes()), 9),
            Operation::Fill { map: 0, count: 2, value: vec![7; 4] },
            Operation::Values { map: 0, first: 1, bytes: vec![8; 8] },
            Operation::Fill { map: 0, count: 1, value: vec![9; 4] },
            Operation::Clear { map: 0 },
            Operation::Fill { map: 0, count: 3, value: vec![5; 4] },
            put(1, bytes(b"cd"), 2),
            Operation::Delete { map: 1, key: bytes(b"ab") },
            put(1, bytes(b"ef"), 3),
            Operation::Delete { map: 2, key: prefix(8, [10, 0, 0, 0]) },
            put(2, prefix(16, [10, 1, 9, 9]), 4),
            Operation::Clear { map: 2 },
            put(2, prefix(0, [0; 4]), 4),
            Operation::Delete { map: 3, key: word(2, 5) },
            Operation::Write { map: 3, key: word(1, 5), at: 2, bytes: vec![7, 7] },
            put(3, word(2, 5), 9),
            put(3, word(9, 7), 9),
            Operation::Delete { map: 3, key: word(1, 5) },
            Operation::Clear { map: 3 },
            put(3, word(3, 5), 9),
            put(1, bytes(b"gh"), 4),
        ];
        let failed = instance.apply(&batch);
        assert!(
            matches!(failed, Err(ControlError::Operation { at: 20, why: MapError::Full(2) })),
            "{failed:?}"
        );
        assert_eq!(all(&mut instance), before);
        instance.apply(&batch[..19]).unwrap();
        assert_ne!(all(&mut instance), before);
    }

    /// The program deletes entries of its own, and the control plane does not see it.
    #[test]
    fn a_missing_entry_can_be_deleted() {
        let mut instance = filled();
        let before = all(&mut instance);
        let gone = Operation::Delete { map: 1, key: bytes(b"zz") };
        instance.apply(std::slice::from_ref(&gone)).unwrap();
        let failed = instance.apply(&[gone, Operation::Clear { map: 9 }]);
        assert!(matches!(failed, Err(ControlError::Operation { at: 1, .. })), "{failed:?}");
        assert_eq!(all(&mut instance), before);
    }

    #[test]
    fn every_operation_is_checked() {
        let mut instance = filled();
        let mut refused = |operation| match instance.apply(&[operation]) {
            Err(ControlError::Operation { at: 0, why }) => why,
            other => panic!("{other:?}"),
        };
        let short = MapError::KeySize { given: 1, wanted: 2 };
        assert_eq!(refused(put(1, bytes(b"a"), 1)), short);
        assert_eq!(refused(Operation::Delete { map: 1, key: bytes(b"a") }), short);
        assert_eq!(refused(Operation::Delete { map: 0, key: bytes(&[0; 4]) }), MapError::Kind);
        assert_eq!(refused(put(0, bytes(&9_u32.to_ne_bytes()), 1)), MapError::Absent);
        assert_eq!(refused(put(1, word(1, 1), 1)), MapError::Kind);
        assert_eq!(refused(put(3, bytes(&[0; 8]), 1)), MapError::Kind);
        assert_eq!(refused(Operation::Clear { map: 4 }), MapError::NoMap);
        let fill = |map, count, bytes| Operation::Fill { map, count, value: vec![0; bytes] };
        assert_eq!(refused(fill(1, 1, 4)), MapError::Kind);
        assert_eq!(refused(fill(0, 4, 4)), MapError::Absent);
        assert_eq!(refused(fill(0, 3, 5)), MapError::ValueSize { given: 5, wanted: 4 });
        let values = |map, first, bytes| Operation::Values { map, first, bytes: vec![0; bytes] };
        assert_eq!(refused(values(1, 0, 4)), MapError::Kind);
        assert_eq!(refused(values(0, 2, 8)), MapError::Absent);
        assert_eq!(refused(values(0, u32::MAX, 8)), MapError::Absent);
        assert_eq!(refused(values(0, 0, 7)), MapError::ValueSize { given: 7, wanted: 4 });
        let long = MapError::Prefix { given: 33, most: 32 };
        assert_eq!(refused(put(2, prefix(33, [0; 4]), 1)), long);
        let mut write = |map, key, at, bytes: &[u8]| {
            refused(Operation::Write { map, key, at, bytes: bytes.to_vec() })
        };
        assert_eq!(write(1, bytes(b"zz"), 0, &[1]), MapError::Absent);
        assert_eq!(write(0, bytes(&9_u32.to_ne_bytes()), 0, &[1]), MapError::Absent);
        let beyond = MapError::ValueSize { given: 5, wanted: 4 };
        assert_eq!(write(1, bytes(b"ab"), 3, &[1, 2]), beyond);
        assert!(matches!(write(1, bytes(b"ab"), u32::MAX, &[1]), MapError::ValueSize { .. }));
    }

    #[test]
    fn parts_of_values_are_written() {
        let mut instance = filled();
        let write =
            Operation::Write { map: 2, key: prefix(8, [10, 0, 0, 0]), at: 1, bytes: vec![9, 8] };
        instance.apply(&[write]).unwrap();
        let found = instance.get(2, &prefix(8, [10, 0, 0, 0])).unwrap();
        assert_eq!(found, Some(vec![8, 9, 8, 0]));
        assert_eq!(instance.get(2, &prefix(16, [10, 1, 0, 0])).unwrap(), Some(vec![16, 0, 0, 0]));
    }

    #[test]
    fn maps_are_read_in_pieces_and_by_key() {
        let mut instance = filled();
        let mut from = Some(0);
        let mut read = Vec::new();
        while let Some(at) = from {
            let piece = instance.read(3, at, 2).unwrap();
            assert!(piece.entries.len() <= 2);
            read.extend(piece.entries);
            from = piece.next;
        }
        assert_eq!(read, instance.read(3, 0, u32::MAX).unwrap().entries);
        assert_eq!(read.len(), 3);
        assert_eq!(instance.read(3, 99, 2).unwrap(), Piece::default());
        let get = |instance: &mut Instance, map, key| {
            instance
                .get(map, &key)
                .unwrap()
                .map(|value| u32::from_ne_bytes(value.try_into().unwrap()))
        };
        assert_eq!(get(&mut instance, 2, prefix(16, [10, 1, 7, 7])), Some(16));
        assert_eq!(get(&mut instance, 2, prefix(24, [10, 1, 7, 0])), None, "no longest prefix");
        assert_eq!(get(&mut instance, 3, word(2, 5)), Some(2));
        assert_eq!(get(&mut instance, 3, word(2, 6)), None);
        assert_eq!(get(&mut instance, 0, bytes(&1_u32.to_ne_bytes())), Some(7));
        assert!(instance.get(1, &word(1, 1)).is_err());
        assert!(instance.get(9, &word(1, 1)).is_err());
        let keys = [word(2, 5), word(2, 6), word(1, 5)];
        let values = instance.get_all(3, &keys).unwrap();
        let value = |number: u32| Some(number.to_ne_bytes().to_vec());
        assert_eq!(values, [value(2), None, value(1)]);
        assert!(instance.get_all(3, &[word(2, 5), bytes(b"ab")]).is_err());
    }
}
