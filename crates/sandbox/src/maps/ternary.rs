//! Ternary and range match: several entries can match a key, and the first one in match order wins.
//! The control plane finds an entry by key in a hash table, and the match order in a tree. Packets
//! use a separate index, which is rebuilt after changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use p4_object::WordRange;

use super::MapError;
use super::hash::Hash;
use super::tuples::{Tuples, fits, list_cost};

/// Key of an entry of a ternary map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TernaryKey {
    /// One range for each 64-bit word of the key, in native byte order.
    pub(crate) words: Vec<WordRange>,
    /// The matching entry with the highest priority wins; among equal priorities, the oldest one.
    pub(crate) priority: u32,
}

/// Entries with keys of one size.
#[derive(Debug)]
pub(crate) struct Ternary {
    /// Entry numbers, keyed by words and priority as bytes.
    known: Hash,
    /// Insertion time of each entry.
    came: Vec<u64>,
    /// Insertion time of the next entry.
    now: u64,
    /// Match order: by descending priority, then by insertion time.
    order: BTreeMap<(Reverse<u32>, u64), u32>,
    /// Number of words of a key.
    words: usize,
    /// Index for packets; discarded when entries are inserted or deleted.
    list: Option<List>,
}

/// Index used for packets.
#[derive(Debug)]
struct List {
    /// Entry numbers in match order.
    entries: Vec<u32>,
    index: Tuples,
}

/// Maximum memory of an entry in the tree, in bytes. A leaf node of 240 bytes has room for 11
/// entries and holds at least five. An inner node takes 96 bytes more and holds at least six.
const TREE: u64 = 52;

/// Key as bytes: its words, followed by its priority.
fn bytes_of(key: &TernaryKey) -> Vec<u8> {
    let words = key.words.iter().flat_map(|word| [word.mask, word.from, word.to]);
    words.flat_map(u64::to_ne_bytes).chain(key.priority.to_ne_bytes()).collect()
}

/// Inverse of `bytes_of`.
fn key_of(bytes: &[u8]) -> TernaryKey {
    let priority = bytes.last_chunk().map_or(0, |priority| u32::from_ne_bytes(*priority));
    TernaryKey { words: words_of(bytes).collect(), priority }
}

/// Words of a key in byte form, without the priority.
fn words_of(bytes: &[u8]) -> impl Iterator<Item = WordRange> + '_ {
    bytes.as_chunks::<8>().0.as_chunks::<3>().0.iter().map(|word| {
        let [mask, from, to] = word.map(u64::from_ne_bytes);
        WordRange { mask, from, to }
    })
}

impl Ternary {
    pub(crate) fn needed(key_size: u32, most: u32) -> u64 {
        let word = size_of::<WordRange>() as u64;
        // The hash table holds the words and the priority. In addition, each entry has its
        // insertion time and its positions in the tree and in the list.
        let known = u64::from(key_size / 8) * word + 4;
        let entry = known + 8 + TREE + 4 + Tuples::needed(key_size);
        u64::from(most) * entry + Hash::overhead(most)
    }

    pub(crate) fn new(key_size: usize, most: u32) -> Self {
        let words = key_size / 8;
        let known = Hash::new(words * size_of::<WordRange>() + size_of::<u32>(), most);
        let came = vec![0; most as usize];
        Self { known, came, now: 0, order: BTreeMap::new(), words, list: None }
    }

    pub(crate) fn cost(&self) -> u64 {
        match &self.list {
            Some(list) => list.index.cost(),
            None => list_cost(self.order.len(), self.words),
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let Some(list) = &self.list else {
            let mut entries = self.entries();
            return entries.find(|(rule, _)| fits(&rule.words, key)).map(|(_, entry)| entry);
        };
        list.index.find(key).map(|at| list.entries[at])
    }

    /// Rebuilds the index if it has been discarded.
    pub(crate) fn settle(&mut self) {
        if self.list.is_none() {
            let entries: Vec<u32> = self.order.values().copied().collect();
            let rule = |place: u32| words_of(self.known.key(entries[place as usize]));
            let index = Tuples::new(entries.len(), self.words, rule);
            self.list = Some(List { entries, index });
        }
    }

    fn check(&self, key: &TernaryKey) -> Result<(), MapError> {
        let (given, wanted) = (key.words.len() * 8, self.words * 8);
        if given != wanted {
            return Err(MapError::KeySize { given, wanted });
        }
        match key.words.iter().find(|word| word.from > word.to || word.from > word.mask) {
            Some(&WordRange { mask, from, to }) => Err(MapError::Empty { from, to, mask }),
            None => Ok(()),
        }
    }

    /// Entry of exactly this key and priority.
    pub(crate) fn entry(&self, key: &TernaryKey) -> Option<u32> {
        self.known.find(&bytes_of(key))
    }

    /// Insertion time of the entry with exactly this key and priority.
    pub(super) fn came(&self, key: &TernaryKey) -> Option<u64> {
        self.entry(key).map(|entry| self.came[entry as usize])
    }

    pub(crate) fn insert(&mut self, key: &TernaryKey) -> Result<u32, MapError> {
        self.check(key)?;
        if let Some(entry) = self.entry(key) {
            return Ok(entry);
        }
        let entry = self.put_back(self.now, key)?;
        self.now += 1;
        Ok(entry)
    }

    /// Inserts a missing entry with an earlier insertion time.
    pub(super) fn put_back(&mut self, came: u64, key: &TernaryKey) -> Result<u32, MapError> {
        let entry = self.known.make(&bytes_of(key))?;
        self.list = None;
        self.came[entry as usize] = came;
        self.order.insert((Reverse(key.priority), came), entry);
        Ok(entry)
    }

    pub(crate) fn remove(&mut self, key: &TernaryKey) -> Result<(), MapError> {
        self.check(key)?;
        let came = self.came(key).ok_or(MapError::Absent)?;
        self.known.remove(&bytes_of(key))?;
        self.list = None;
        self.order.remove(&(Reverse(key.priority), came));
        Ok(())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (TernaryKey, u32)> + '_ {
        self.entries_from(0)
    }

    /// Entries from a position in match order on. Constant time if the index is current.
    pub(crate) fn entries_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (TernaryKey, u32)> + '_ {
        let (list, tree) = match &self.list {
            Some(list) => (list.entries.get(first..).unwrap_or_default(), None),
            None => (&[][..], Some(self.order.values().skip(first))),
        };
        let entries = list.iter().chain(tree.into_iter().flatten());
        entries.map(|entry| (key_of(self.known.key(*entry)), *entry))
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.order.clear();
        self.list = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    fn exact(value: u64) -> WordRange {
        WordRange { mask: ALL, from: value, to: value }
    }

    fn key(words: &[WordRange], priority: u32) -> TernaryKey {
        TernaryKey { words: words.to_vec(), priority }
    }

    fn find(ternary: &Ternary, words: &[u64]) -> Option<u32> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        ternary.find(&bytes)
    }

    #[test]
    fn priorities_decide_then_the_order_of_insertion() {
        let mut map = Ternary::new(16, 8);
        let any = WordRange { mask: 0, from: 0, to: 0 };
        let range = WordRange { mask: 0xff, from: 10, to: 20 };
        let low = map.insert(&key(&[any, any], 1)).unwrap();
        let first = map.insert(&key(&[exact(7), any], 5)).unwrap();
        let second = map.insert(&key(&[any, range], 5)).unwrap();
        let high = map.insert(&key(&[exact(7), exact(12)], 9)).unwrap();
        assert_eq!(find(&map, &[7, 12]), Some(high));
        assert_eq!(find(&map, &[7, 13]), Some(first));
        assert_eq!(find(&map, &[8, 0x1_0d]), Some(second));
        assert_eq!(find(&map, &[8, 21]), Some(low));
        assert_eq!(map.insert(&key(&[exact(7), any], 5)), Ok(first), "the same entry");
        assert_eq!(map.remove(&key(&[exact(7), any], 4)), Err(MapError::Absent));
        assert_eq!(map.remove(&key(&[exact(7), any], 5)), Ok(()));
        assert_eq!(find(&map, &[7, 13]), Some(second));
        let priorities: Vec<_> = map.entries().map(|(key, _)| key.priority).collect();
        assert_eq!(priorities, [9, 5, 1]);
    }

    /// A packet pays for the words that it may have to compare.
    #[test]
    fn long_keys_cost_more() {
        let wide = |words: usize| {
            let mut map = Ternary::new(8 * words, 16);
            for at in 0..16 {
                map.insert(&key(&vec![exact(at); words], 0)).unwrap();
            }
            let before = map.cost();
            map.settle();
            assert_eq!(map.cost(), before, "in a list as well");
            before
        };
        assert_eq!([wide(1), wide(8), wide(9), wide(512)], [48, 48, 96, 48 * 64]);
    }

    #[test]
    fn a_key_that_no_packet_matches_is_refused() {
        let mut map = Ternary::new(8, 1);
        let wrong = WordRange { mask: 1, from: 2, to: 3 };
        assert!(matches!(map.insert(&key(&[wrong], 0)), Err(MapError::Empty { .. })));
        assert!(matches!(map.insert(&key(&[], 0)), Err(MapError::KeySize { given: 0, wanted: 8 })));
        map.insert(&key(&[exact(1)], 0)).unwrap();
        assert_eq!(map.insert(&key(&[exact(2)], 0)), Err(MapError::Full(1)));
    }

    /// Neither entries that differ only in their keys nor entries that differ only in their
    /// priorities slow down with their number.
    #[test]
    fn many_entries_come_and_go() {
        const MANY: u32 = 50_000;
        let by_key = |at: u32| key(&[exact(at.into())], 5);
        let by_priority = |at: u32| key(&[exact(7)], at);
        let mut map = Ternary::new(8, 2 * MANY);
        for at in 0..MANY {
            map.insert(&by_key(at)).unwrap();
            map.insert(&by_priority(at + 6)).unwrap();
        }
        map.settle();
        assert_eq!(find(&map, &[7]), map.entry(&by_priority(MANY + 5)));
        assert_eq!(find(&map, &[8]), map.entry(&by_key(8)));
        for at in 0..MANY {
            map.remove(&by_priority(at + 6)).unwrap();
        }
        map.settle();
        assert_eq!(find(&map, &[7]), map.entry(&by_key(7)));
        assert_eq!(map.order.len(), MANY as usize);
    }

    /// The default memory limit has room for a million entries of two words.
    #[test]
    fn a_large_one_has_room() {
        let map = |value_size| p4_object::Map {
            name: "large".to_owned(),
            kind: p4_object::MapKind::Ternary,
            key_size: 16,
            value_size,
            max_entries: 1 << 20,
        };
        let most = crate::Limits::default().memory;
        for value_size in [8, 32] {
            let needed = super::super::Store::needed(&map(value_size));
            assert!(needed <= most, "{needed} of {most} bytes");
        }
    }

    /// A scan in pieces visits each entry once, for any piece size.
    #[test]
    fn pieces_are_read_in_time_that_grows_with_the_entries() {
        const MANY: u32 = 60_000;
        let mut map = Ternary::new(8, MANY);
        for at in 0..MANY {
            map.insert(&key(&[exact(at.into())], at % 7)).unwrap();
        }
        let wanted: Vec<_> = map.entries().collect();
        map.settle();
        let begin = std::time::Instant::now();
        let at = |place: usize| map.entries_from(place).next();
        let read: Vec<_> = (0..).map_while(at).collect();
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
        assert!(read == wanted, "in the order in which they are tried, settled or not");
    }

    use proptest::prelude::*;

    /// A word with few distinct masks and values, so that entries share masks and match some
    /// packets.
    fn word() -> impl Strategy<Value = WordRange> {
        let masked = (prop::sample::select(vec![ALL, 0xff, 0xf0f, 0]), 0_u64..20)
            .prop_map(|(mask, value)| WordRange { mask, from: value & mask, to: value & mask });
        let range = (0_u64..20, 0_u64..20).prop_map(|(from, more)| WordRange {
            mask: ALL,
            from,
            to: from + more,
        });
        prop_oneof![8 => masked, 1 => range]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// The index returns the same as the list, also after deletions.
        #[test]
        fn the_index_changes_nothing(
            entries in prop::collection::vec((word(), word(), 0_u32..4), 1..400),
            gone in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let (mut list, mut index) = (Ternary::new(16, 400), Ternary::new(16, 400));
            let keys: Vec<_> =
                entries.iter().map(|(a, b, priority)| key(&[*a, *b], *priority)).collect();
            for key in &keys {
                prop_assert_eq!(list.insert(key), index.insert(key));
            }
            index.settle();
            for round in 0..2 {
                for a in 0..20 {
                    for b in 0..20 {
                        prop_assert_eq!(find(&list, &[a, b]), find(&index, &[a, b]), "{}", round);
                    }
                }
                for gone in &gone {
                    prop_assert_eq!(list.remove(gone.get(&keys)), index.remove(gone.get(&keys)));
                }
                index.settle();
            }
        }
    }
}
