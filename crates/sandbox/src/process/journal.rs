//! Journal of control-plane changes to a program's maps, replayed to a restarted process.

mod cells;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;

use p4_object::{Entry, Key, Map, MapKind};

use crate::control::Operation;
use crate::maps::canonical_prefix;
use cells::Cells;

/// Identity of an entry: its map and its canonical key.
type Name = (u32, Key);

/// The net effect of all changes, one operation per entry, in insertion order for each map. The order matters
/// for ternary entries of equal priority. An entry that was inserted and deleted leaves no
/// operation. A deleted initial entry keeps its delete operation at its position, because the
/// deletion made room for later entries. Arrays have values instead of entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    /// All operations on other maps than arrays, by map and by place within it.
    operations: BTreeMap<(u32, u64), Operation>,
    places: HashMap<Name, u64>,
    /// Writes to parts of initial entries; their other bytes keep the initial value.
    parts: HashMap<Name, Vec<u64>>,
    next: u64,
    /// Maps with prefixes as keys.
    prefixes: HashSet<u32>,
    arrays: BTreeMap<u32, Cells>,
    /// Initial entries of the program that have not been deleted.
    own: HashMap<u32, HashSet<Key>>,
    /// All initial entries of the program, in order, except those of arrays.
    entries: Vec<Entry>,
}

impl Journal {
    /// Creates an empty journal for a program.
    pub(super) fn new(maps: &[Map], object: &[u8]) -> Self {
        let of = |kind| (0..).zip(maps).filter(move |(_, map)| map.kind == kind);
        let prefixes = of(MapKind::LpmTrie).map(|(at, _)| at).collect();
        let arrays = of(MapKind::Array).map(|(at, map)| (at, Cells::new(map.value_size))).collect();
        let mut journal = Self { prefixes, arrays, ..Self::default() };
        // The object is valid: a process has already loaded it.
        let entries = p4_object::read(object).map(|object| object.entries).unwrap_or_default();
        for entry in entries {
            match (journal.arrays.get_mut(&entry.map), index(&entry.key)) {
                (Some(cells), Some(index)) => cells.set_initial(index, entry.value),
                _ => journal.entries.push(entry),
            }
        }
        let names = journal.entries.iter().map(|entry| journal.name(entry.map, &entry.key));
        let mut own = HashMap::<u32, HashSet<Key>>::new();
        names.for_each(|(map, key)| {
            own.entry(map).or_default().insert(key);
        });
        journal.own = own;
        journal
    }

    fn name(&self, map: u32, key: &Key) -> Name {
        match key {
            Key::Bytes(key) if self.prefixes.contains(&map) => {
                (map, Key::Bytes(canonical_prefix(key)))
            }
            key => (map, key.clone()),
        }
    }

    /// Records an operation that has been applied.
    pub(super) fn note(&mut self, operation: Operation) {
        if let Some(cells) = self.arrays.get_mut(&operation.map()) {
            return note_cells(cells, operation);
        }
        match &operation {
            Operation::Put(entry) => self.put(self.name(entry.map, &entry.key), operation),
            Operation::Delete { map, key } => self.delete(self.name(*map, key), operation),
            Operation::Write { .. } => self.write(operation),
            Operation::Clear { map } => self.clear(*map),
            // They fail for other maps than arrays.
            Operation::Fill { .. } | Operation::Values { .. } => {}
        }
    }

    fn put(&mut self, name: Name, operation: Operation) {
        let place = self.places.get(&name).map(|place| (name.0, *place));
        let before = place.and_then(|place| self.operations.get_mut(&place));
        if let Some(before @ Operation::Put(_)) = before {
            // Replace the value and keep the position.
            *before = operation;
            return;
        }
        self.forget(&name);
        let place = self.last(operation);
        self.places.insert(name, place);
    }

    fn delete(&mut self, name: Name, operation: Operation) {
        self.forget(&name);
        if self.own.get_mut(&name.0).is_some_and(|own| own.remove(&name.1)) {
            self.last(operation);
        }
    }

    /// Removes all operations on an entry.
    fn forget(&mut self, name: &Name) {
        let parts = self.parts.remove(name).unwrap_or_default();
        for place in parts.into_iter().chain(self.places.remove(name)) {
            self.operations.remove(&(name.0, place));
        }
    }

    /// Appends an operation and returns its position.
    fn last(&mut self, operation: Operation) -> u64 {
        self.next += 1;
        self.operations.insert((operation.map(), self.next), operation);
        self.next
    }

    /// Records a partial write, merged into a recorded entry if there is one.
    fn write(&mut self, operation: Operation) {
        let Operation::Write { map, key, at, bytes } = &operation else { return };
        let (name, from) = (self.name(*map, key), *at as usize);
        if let Some(place) = self.places.get(&name)
            && let Some(Operation::Put(entry)) = self.operations.get_mut(&(*map, *place))
        {
            // The write has succeeded, so it is in range.
            if let Some(part) = entry.value.get_mut(from..from + bytes.len()) {
                part.copy_from_slice(bytes);
            }
            return;
        }
        let is_same = |place: &u64| {
            let before = self.operations.get(&(*map, *place));
            matches!(before, Some(Operation::Write { at: other, bytes: old, .. })
                if other == at && old.len() == bytes.len())
        };
        let parts = self.parts.entry(name).or_default();
        let place = match parts.iter().copied().find(is_same) {
            Some(place) => place,
            None => {
                self.next += 1;
                parts.push(self.next);
                self.next
            }
        };
        self.operations.insert((*map, place), operation);
    }

    /// Removes an operation, and the record of its entry.
    fn remove(&mut self, at: (u32, u64)) {
        match self.operations.remove(&at) {
            Some(Operation::Put(entry)) => {
                self.places.remove(&self.name(entry.map, &entry.key));
            }
            Some(Operation::Write { map, key, .. }) => {
                self.parts.remove(&self.name(map, &key));
            }
            _ => {}
        }
    }

    fn clear(&mut self, map: u32) {
        let places: Vec<_> = self.operations.range(of_map(map)).map(|(at, _)| *at).collect();
        places.iter().for_each(|at| self.remove(*at));
        self.own.remove(&map);
        self.last(Operation::Clear { map });
    }

    /// Makes the map `new` equal to the map `old` of another journal after a replay.
    pub(super) fn take_over(&mut self, new: u32, other: &Self, old: u32) {
        self.note(Operation::Clear { map: new });
        if let (Some(cells), Some(others)) = (self.arrays.get_mut(&new), other.arrays.get(&old)) {
            others.initial().for_each(|(index, value)| cells.set(index, value));
        }
        let mut known = HashSet::new();
        for entry in other.entries.iter().filter(|entry| entry.map == old) {
            // Of initial entries with the same key, the first wins.
            if known.insert(other.name(old, &entry.key)) {
                self.note(Operation::Put(entry.clone()).on(new));
            }
        }
        other.of_map(old).for_each(|operation| self.note(operation.into_owned().on(new)));
    }

    /// The operations on a map, in replay order.
    pub(super) fn of_map(&self, map: u32) -> impl Iterator<Item = Cow<'_, Operation>> {
        let cells = self.arrays.get(&map).into_iter();
        let values = cells.flat_map(move |cells| cells.operations(map)).map(Cow::Owned);
        let operations = self.operations.range(of_map(map));
        values.chain(operations.map(|(_, operation)| Cow::Borrowed(operation)))
    }

    /// All operations, in replay order. An entry to delete may not exist.
    pub(super) fn operations(&self) -> impl Iterator<Item = Cow<'_, Operation>> {
        let arrays = self.arrays.iter();
        let values = arrays.flat_map(|(map, cells)| cells.operations(*map)).map(Cow::Owned);
        values.chain(self.operations.values().map(Cow::Borrowed))
    }
}

/// Records an operation on an array.
fn note_cells(cells: &mut Cells, operation: Operation) {
    match operation {
        Operation::Put(Entry { key, value, .. }) => {
            index(&key).into_iter().for_each(|at| cells.set(at, &value));
        }
        Operation::Write { key, at, bytes, .. } => {
            index(&key).into_iter().for_each(|index| cells.write(index, at, &bytes));
        }
        Operation::Fill { count, value, .. } => cells.fill(count, value),
        Operation::Values { first, bytes, .. } => cells.set(first, &bytes),
        Operation::Clear { .. } => cells.clear(),
        // It fails for an array.
        Operation::Delete { .. } => {}
    }
}

/// Places of a map's operations.
fn of_map(map: u32) -> RangeInclusive<(u32, u64)> {
    (map, 0)..=(map, u64::MAX)
}

/// Index of an array's value.
fn index(key: &Key) -> Option<u32> {
    let Key::Bytes(key) = key else { return None };
    key.as_slice().try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts() {
        let put = |map, key: u8, value: u8| {
            Operation::Put(Entry { map, key: Key::Bytes(vec![key]), value: vec![value] })
        };
        let delete = |map, key: u8| Operation::Delete { map, key: Key::Bytes(vec![key]) };
        let mut journal = Journal::default();
        // An initial entry of the program.
        journal.own.insert(0, [Key::Bytes(vec![2])].into());
        let all = [put(0, 1, 1), put(0, 2, 2), put(0, 1, 3), put(1, 1, 1), delete(0, 2)];
        all.into_iter().for_each(|operation| journal.note(operation));
        let left: Vec<_> = journal.operations().map(Cow::into_owned).collect();
        assert_eq!(left, [put(0, 1, 3), delete(0, 2), put(1, 1, 1)], "an entry has one line");
        journal.note(put(0, 2, 9));
        let left: Vec<_> = journal.operations().map(Cow::into_owned).collect();
        assert_eq!(left, [put(0, 1, 3), delete(0, 2), put(0, 2, 9), put(1, 1, 1)]);
        journal.note(Operation::Clear { map: 0 });
        journal.note(put(0, 5, 5));
        let left: Vec<_> = journal.operations().map(Cow::into_owned).collect();
        assert_eq!(left, [Operation::Clear { map: 0 }, put(0, 5, 5), put(1, 1, 1)]);
    }

    #[test]
    fn an_array_has_values_instead_of_entries() {
        let put = |at, value: u8| {
            Operation::Put(Entry { map: 1, key: Key::index(at), value: vec![value; 2] })
        };
        let fill = Operation::Fill { map: 1, count: 2, value: vec![3; 2] };
        let values = Operation::Values { map: 1, first: 1, bytes: vec![1; 4] };
        let write = Operation::Write { map: 1, key: Key::index(2), at: 1, bytes: vec![5] };
        let mut journal = Journal::default();
        journal.arrays.insert(1, Cells::new(2));
        let all = [put(1, 1), put(4, 1), fill.clone(), values, write];
        all.into_iter().for_each(|operation| journal.note(operation));
        let left: Vec<_> = journal.operations().map(Cow::into_owned).collect();
        let values =
            |first, bytes: &[u8]| Operation::Values { map: 1, first, bytes: bytes.to_vec() };
        assert_eq!(left, [fill, values(1, &[1, 1, 1, 5]), values(4, &[1; 2])]);
        let mut other = Journal::default();
        other.arrays.insert(0, Cells::new(2));
        journal.arrays.get_mut(&1).unwrap().set_initial(9, vec![9; 2]);
        other.take_over(0, &journal, 1);
        let left: Vec<_> = other.of_map(0).map(Cow::into_owned).collect();
        assert_eq!(left[0], Operation::Clear { map: 0 });
        assert_eq!(left.last(), Some(&Operation::Values { map: 0, first: 9, bytes: vec![9; 2] }));
    }

    /// A program with an LPM table and an exact-match table, with one entry each.
    fn program() -> (Vec<Map>, Vec<u8>) {
        let map = |name: &str, kind| Map {
            name: name.to_owned(),
            kind,
            key_size: 8,
            value_size: 1,
            max_entries: 1 << 20,
        };
        let maps = vec![map("prefixes", MapKind::LpmTrie), map("exact", MapKind::Hash)];
        let entry = |map, key| Entry { map, key, value: vec![7] };
        let exit = p4_object::Instruction {
            opcode: p4_object::opcode::EXIT,
            ..p4_object::Instruction::default()
        };
        let object = p4_object::Object {
            code: vec![exit],
            functions: [(0, p4_object::ENTRY.to_owned())].into(),
            maps: maps.clone(),
            entries: vec![entry(0, prefix(8, [10, 9, 9, 9])), entry(1, exact(10))],
            ..p4_object::Object::default()
        };
        (maps, p4_object::write(&object).unwrap())
    }

    fn prefix(length: u32, address: [u8; 4]) -> Key {
        Key::Bytes([length.to_ne_bytes(), address].concat())
    }

    fn exact(number: u64) -> Key {
        Key::Bytes(number.to_ne_bytes().to_vec())
    }

    fn put(map: u32, key: Key) -> Operation {
        Operation::Put(Entry { map, key, value: vec![1] })
    }

    #[test]
    fn entries_that_were_added_and_deleted_leave_no_operation() {
        let (maps, object) = program();
        let mut journal = Journal::new(&maps, &object);
        for number in 0..500_000_u32 {
            let key = prefix(32, number.to_be_bytes());
            journal.note(put(0, key.clone()));
            journal.note(Operation::Delete { map: 0, key });
            let key = exact(number.into());
            journal.note(put(1, key.clone()));
            journal.note(Operation::Write { map: 1, key: key.clone(), at: 0, bytes: vec![2] });
            journal.note(Operation::Delete { map: 1, key });
        }
        let left: Vec<_> = journal.operations().map(Cow::into_owned).collect();
        assert_eq!(left, [Operation::Delete { map: 1, key: exact(10) }], "the program's own");
        assert_eq!((journal.places.len(), journal.parts.len()), (0, 0));
    }

    /// A deletion is replayed before the insertion that it made room for.
    #[test]
    fn deletions_and_insertions_are_replayed_in_order() {
        let (maps, object) = program();
        let mut journal = Journal::new(&maps, &object);
        let gone = Operation::Delete { map: 1, key: exact(10) };
        let all = [gone.clone(), put(1, exact(11)), put(1, exact(10))];
        all.iter().cloned().for_each(|operation| journal.note(operation));
        assert!(journal.operations().map(Cow::into_owned).eq(all.iter().cloned()));
        for _ in 0..3 {
            journal.note(gone.clone());
            journal.note(put(1, exact(10)));
        }
        assert!(
            journal.operations().map(Cow::into_owned).eq(all.iter().cloned()),
            "it is deleted once"
        );
        journal.note(gone);
        assert!(journal.operations().map(Cow::into_owned).eq(all[..2].iter().cloned()));
    }

    #[test]
    fn deleted_initial_entries_stay_deleted() {
        let (maps, object) = program();
        let mut journal = Journal::new(&maps, &object);
        let operations =
            |journal: &Journal| journal.operations().map(Cow::into_owned).collect::<Vec<_>>();
        let gone = [
            Operation::Delete { map: 0, key: prefix(8, [10, 0, 0, 0]) },
            Operation::Delete { map: 1, key: exact(10) },
        ];
        journal.note(Operation::Write { map: 1, key: exact(10), at: 0, bytes: vec![2] });
        gone.iter().cloned().for_each(|delete| journal.note(delete));
        assert_eq!(operations(&journal), gone);
        journal.note(put(0, prefix(8, [10, 1, 2, 3])));
        journal.note(put(0, prefix(8, [10, 0, 0, 0])));
        let again = put(0, prefix(8, [10, 0, 0, 0]));
        assert_eq!(operations(&journal), [gone[0].clone(), again, gone[1].clone()]);
        journal.note(Operation::Delete { map: 0, key: prefix(8, [10, 3, 2, 1]) });
        assert_eq!(operations(&journal), gone, "one prefix has many forms");
        journal.note(Operation::Clear { map: 0 });
        journal.note(put(0, prefix(8, [10, 0, 0, 0])));
        journal.note(Operation::Delete { map: 0, key: prefix(8, [10, 0, 0, 0]) });
        assert_eq!(operations(&journal), [Operation::Clear { map: 0 }, gone[1].clone()]);
    }

    #[test]
    fn partial_writes_are_replayed() {
        let key = |key: u8| Key::Bytes(vec![key]);
        let put = |key: u8, value: [u8; 3]| {
            let key = Key::Bytes(vec![key]);
            Operation::Put(Entry { map: 0, key, value: value.to_vec() })
        };
        let write = |of: u8, at, bytes: &[u8]| Operation::Write {
            map: 0,
            key: key(of),
            at,
            bytes: bytes.to_vec(),
        };
        let mut journal = Journal::default();
        let all = [
            put(1, [1, 2, 3]),
            write(1, 1, &[7, 8]),
            // Initial entry: one operation per range, and the last write wins.
            write(2, 0, &[1]),
            write(2, 1, &[5]),
            write(2, 0, &[2]),
        ];
        all.into_iter().for_each(|operation| journal.note(operation));
        let operations =
            |journal: &Journal| journal.operations().map(Cow::into_owned).collect::<Vec<_>>();
        assert_eq!(operations(&journal), [put(1, [1, 7, 8]), write(2, 0, &[2]), write(2, 1, &[5])]);
        journal.note(put(2, [9, 9, 9]));
        journal.note(write(2, 0, &[3]));
        assert_eq!(operations(&journal), [put(1, [1, 7, 8]), put(2, [3, 9, 9])]);
        journal.note(write(3, 0, &[3]));
        journal.note(Operation::Delete { map: 0, key: key(1) });
        journal.note(Operation::Clear { map: 0 });
        journal.note(write(3, 0, &[4]));
        assert_eq!(operations(&journal), [Operation::Clear { map: 0 }, write(3, 0, &[4])]);
    }
}
