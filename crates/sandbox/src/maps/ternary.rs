//! Ternary keys and ranges: entries that fit many keys, the first of which wins. Entries stand in the
//! order in which they are tried, one after the other in memory; many of them have an index.

use p4::object::WordRange;

use super::MapError;
use super::slots::Slots;
use super::tuples::Tuples;

/// The key of an entry of a ternary map.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TernaryKey {
    /// One for each 64-bit word of a key, which is in this machine's byte order.
    pub words: Vec<WordRange>,
    /// Of the entries that fit, the one with the highest wins; of equal ones, the one put in first.
    pub priority: i64,
}

/// Entries of keys of one size.
#[derive(Debug)]
pub(crate) struct Ternary {
    /// Each entry's words, in the order in which entries are tried.
    rules: Vec<WordRange>,
    /// Each entry's priority, and where its value is; in the same order.
    order: Vec<(i64, u32)>,
    /// Words of a key.
    words: usize,
    slots: Slots,
    /// Entries that were put in or taken away make it void.
    index: Option<Tuples>,
}

/// Whether a key is one of those that an entry means.
pub(super) fn fits(rule: &[WordRange], key: &[u8]) -> bool {
    rule.iter().zip(key.as_chunks::<8>().0).all(|(rule, word)| {
        let word = u64::from_ne_bytes(*word) & rule.mask;
        rule.from <= word && word <= rule.to
    })
}

impl Ternary {
    pub(crate) fn needed(key_size: u32, most: u32) -> u64 {
        let word = size_of::<WordRange>() as u64;
        // All words are in the list or in a table of the index once more.
        u64::from(most) * (2 * u64::from(key_size / 8) * word + 64)
    }

    pub(crate) fn new(key_size: usize, most: u32) -> Self {
        let words = key_size / 8;
        Self {
            rules: Vec::with_capacity(words * most as usize),
            order: Vec::with_capacity(most as usize),
            words,
            slots: Slots::new(most),
            index: None,
        }
    }

    pub(crate) fn cost(&self) -> u64 {
        match &self.index {
            Some(index) => index.cost(),
            // A word that does not fit is about three instructions.
            None => self.order.len() as u64 * 3,
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let at = match &self.index {
            Some(index) => index.find(key),
            None => self.rules.chunks_exact(self.words).position(|rule| fits(rule, key)),
        };
        at.map(|at| self.order[at].1)
    }

    /// Makes the index anew if it is void.
    pub(crate) fn settle(&mut self) {
        if self.index.is_none() {
            self.index = Tuples::new(&self.rules, self.words);
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

    pub(super) fn position(&self, key: &TernaryKey) -> Option<usize> {
        let start = self.order.partition_point(|(priority, _)| *priority > key.priority);
        let equal =
            self.order[start..].iter().take_while(|(priority, _)| *priority == key.priority);
        (start..start + equal.count()).find(|at| self.rule(*at) == key.words)
    }

    fn rule(&self, at: usize) -> &[WordRange] {
        &self.rules[at * self.words..][..self.words]
    }

    /// The entry of this very key and priority.
    pub(crate) fn entry(&self, key: &TernaryKey) -> Option<u32> {
        self.position(key).map(|at| self.order[at].1)
    }

    pub(crate) fn insert(&mut self, key: &TernaryKey) -> Result<u32, MapError> {
        self.check(key)?;
        if let Some(entry) = self.entry(key) {
            return Ok(entry);
        }
        self.insert_at(self.order.partition_point(|(priority, _)| *priority >= key.priority), key)
    }

    /// Puts an entry that is not there where it was before.
    pub(super) fn insert_at(&mut self, at: usize, key: &TernaryKey) -> Result<u32, MapError> {
        let entry = self.slots.take().ok_or(MapError::Full(self.slots.most()))?;
        self.index = None;
        self.order.insert(at, (key.priority, entry));
        let place = at * self.words;
        self.rules.splice(place..place, key.words.iter().copied());
        Ok(entry)
    }

    pub(crate) fn remove(&mut self, key: &TernaryKey) -> Result<(), MapError> {
        self.check(key)?;
        let at = self.position(key).ok_or(MapError::Absent)?;
        self.index = None;
        let (_, entry) = self.order.remove(at);
        self.rules.drain(at * self.words..(at + 1) * self.words);
        self.slots.give(entry);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (TernaryKey, u32)> + '_ {
        self.entries_from(0)
    }

    /// Those from a place in their order on.
    pub(crate) fn entries_from(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (TernaryKey, u32)> + '_ {
        self.order.iter().enumerate().skip(first).map(|(at, (priority, entry))| {
            (TernaryKey { words: self.rule(at).to_vec(), priority: *priority }, *entry)
        })
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
        self.order.clear();
        self.slots.clear();
        self.index = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = u64::MAX;

    fn exact(value: u64) -> WordRange {
        WordRange { mask: ALL, from: value, to: value }
    }

    fn key(words: &[WordRange], priority: i64) -> TernaryKey {
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
        let low = map.insert(&key(&[any, any], -1)).unwrap();
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
        assert_eq!(priorities, [9, 5, -1]);
    }

    #[test]
    fn what_nothing_fits_is_refused() {
        let mut map = Ternary::new(8, 1);
        let wrong = WordRange { mask: 1, from: 2, to: 3 };
        assert!(matches!(map.insert(&key(&[wrong], 0)), Err(MapError::Empty { .. })));
        assert!(matches!(map.insert(&key(&[], 0)), Err(MapError::KeySize { given: 0, wanted: 8 })));
        map.insert(&key(&[exact(1)], 0)).unwrap();
        assert_eq!(map.insert(&key(&[exact(2)], 0)), Err(MapError::Full(1)));
    }

    use proptest::prelude::*;

    /// A word of few masks and values, so that entries have masks in common, and packets fit some.
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

        /// The index finds what the list finds, also when entries are gone.
        #[test]
        fn the_index_changes_nothing(
            entries in prop::collection::vec((word(), word(), 0_i64..4), 1..400),
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
