//! What the control plane has done to a program's maps: a process that is started anew is told again.

use std::collections::{BTreeMap, HashMap};

use p4::object::Key;

use crate::control::Operation;

/// The last word on each entry, in the order in which entries came: entries of a ternary map with one
/// priority are tried in it.
#[derive(Debug, Default)]
pub(super) struct Journal {
    operations: BTreeMap<u64, Operation>,
    places: HashMap<(u32, Key), u64>,
    /// Parts of entries that the program has by itself, which stay as they are beside them.
    parts: HashMap<(u32, Key), Vec<u64>>,
    next: u64,
}

impl Journal {
    /// What has been done.
    pub(super) fn note(&mut self, operation: Operation) {
        let (map, key, is_put) = match &operation {
            Operation::Put(entry) => (entry.map, entry.key.clone(), true),
            Operation::Delete { map, key } => (*map, key.clone(), false),
            Operation::Write { .. } => return self.write(operation),
            Operation::Clear { map } => return self.clear(*map),
        };
        let before = self.places.get(&(map, key.clone())).copied();
        let was_put =
            before.is_some_and(|at| matches!(self.operations.get(&at), Some(Operation::Put(_))));
        let place = match before {
            // Another value; the entry stays where it is. Other keys may have several forms, of which
            // the last counts.
            Some(at) if is_put && was_put && matches!(key, Key::Words(..)) => at,
            other => {
                if let Some(at) = other {
                    self.operations.remove(&at);
                }
                self.next += 1;
                self.next
            }
        };
        if is_put && place == self.next {
            // All of the value is said anew.
            for part in self.parts.remove(&(map, key.clone())).unwrap_or_default() {
                self.operations.remove(&part);
            }
        }
        self.operations.insert(place, operation);
        self.places.insert((map, key), place);
    }

    /// A part of a value: of one that was said here, or of one that the program has by itself.
    fn write(&mut self, operation: Operation) {
        let Operation::Write { map, key, at, bytes } = &operation else { return };
        let (name, from) = ((*map, key.clone()), *at as usize);
        if let Some(place) = self.places.get(&name)
            && let Some(Operation::Put(entry)) = self.operations.get_mut(place)
        {
            // It was done: so it fits.
            if let Some(part) = entry.value.get_mut(from..from + bytes.len()) {
                part.copy_from_slice(bytes);
            }
            return;
        }
        let is_same = |place: &u64| {
            let before = self.operations.get(place);
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
        self.operations.insert(place, operation);
    }

    fn clear(&mut self, map: u32) {
        self.operations.retain(|_, operation| operation.map() != map);
        self.places.retain(|(of, _), _| *of != map);
        self.parts.retain(|(of, _), _| *of != map);
        self.next += 1;
        self.operations.insert(self.next, Operation::Clear { map });
    }

    /// All of it, in its order. An entry to be deleted may not be there.
    pub(super) fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values()
    }
}

#[cfg(test)]
mod tests {
    use p4::object::Entry;

    use super::*;

    #[test]
    fn the_last_word_counts() {
        let put = |map, key: u8, value: u8| {
            Operation::Put(Entry { map, key: Key::Bytes(vec![key]), value: vec![value] })
        };
        let delete = |map, key: u8| Operation::Delete { map, key: Key::Bytes(vec![key]) };
        let mut journal = Journal::default();
        let all = [put(0, 1, 1), put(0, 2, 2), put(0, 1, 3), put(1, 1, 1), delete(0, 2)];
        all.into_iter().for_each(|operation| journal.note(operation));
        let left: Vec<_> = journal.operations().cloned().collect();
        assert_eq!(left, [put(0, 1, 3), put(1, 1, 1), delete(0, 2)], "an entry has one line");
        journal.note(put(0, 2, 9));
        assert_eq!(journal.operations().last(), Some(&put(0, 2, 9)));
        journal.note(Operation::Clear { map: 0 });
        journal.note(put(0, 5, 5));
        let left: Vec<_> = journal.operations().cloned().collect();
        assert_eq!(left, [put(1, 1, 1), Operation::Clear { map: 0 }, put(0, 5, 5)]);
    }

    #[test]
    fn parts_are_told_again() {
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
            // The program's own: each part is a line, and its last word counts.
            write(2, 0, &[1]),
            write(2, 1, &[5]),
            write(2, 0, &[2]),
        ];
        all.into_iter().for_each(|operation| journal.note(operation));
        let told = |journal: &Journal| journal.operations().cloned().collect::<Vec<_>>();
        assert_eq!(told(&journal), [put(1, [1, 7, 8]), write(2, 0, &[2]), write(2, 1, &[5])]);
        journal.note(put(2, [9, 9, 9]));
        journal.note(write(2, 0, &[3]));
        assert_eq!(told(&journal), [put(1, [1, 7, 8]), put(2, [3, 9, 9])]);
        journal.note(write(3, 0, &[3]));
        journal.note(Operation::Delete { map: 0, key: key(1) });
        journal.note(Operation::Clear { map: 0 });
        journal.note(write(3, 0, &[4]));
        assert_eq!(told(&journal), [Operation::Clear { map: 0 }, write(3, 0, &[4])]);
    }
}
