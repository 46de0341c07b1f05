//! An index for many ternary entries: those with the same masks are in one hash table (tuple space
//! search; Srinivasan, Suri and Varghese, 1999). Entries with ranges, and masks that few entries have,
//! stay in a list. Made anew when the control plane has changed something.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::hash::Hash;
use p4::object::WordRange;

use super::ternary::fits;

/// Fewer entries are all in the list, which is as fast: 16 ns for 32 of them.
const LEAST: usize = 32;
/// A look into a table takes as long as this many entries of a list.
const LEAST_IN_TABLE: usize = 16;

/// The index. Entries are known by their places in the order in which they are to be tried.
#[derive(Debug)]
pub(super) struct Tuples {
    /// Sorted by their first entries.
    tables: Vec<Table>,
    /// The places of the others, in order, and their words.
    listed: Vec<u32>,
    list: Vec<WordRange>,
    words: usize,
    /// A key under a mask: programs run one after the other.
    scratch: RefCell<Box<[u8]>>,
}

#[derive(Debug)]
struct Table {
    masks: Vec<u64>,
    keys: Hash,
    /// The place of each key's first entry.
    places: Vec<u32>,
    first: u32,
}

impl Tuples {
    /// Bytes that each entry takes at most: its words and its place in the list, or its values and its place
    /// in a table. Tables take most where each has few entries, one more than a power of two.
    pub(super) fn needed(key_size: u32) -> u64 {
        let listed = size_of::<WordRange>() as u64 * u64::from(key_size / 8) + 4;
        listed.max(u64::from(key_size) + 60)
    }

    /// An index of entries of so many words. `rule` has an entry's words, by its place.
    pub(super) fn new<Rule: Iterator<Item = WordRange>>(
        entries: usize,
        words: usize,
        rule: impl Fn(u32) -> Rule,
    ) -> Self {
        let mut by_masks: BTreeMap<Vec<u64>, Vec<u32>> = BTreeMap::new();
        let mut listed = Vec::new();
        for place in 0..entries as u32 {
            if entries >= LEAST && rule(place).all(|word| word.from == word.to) {
                let masks = rule(place).map(|word| word.mask).collect();
                by_masks.entry(masks).or_default().push(place);
            } else {
                listed.push(place);
            }
        }
        let mut tables = Vec::new();
        for (masks, places) in by_masks {
            if places.len() < LEAST_IN_TABLE {
                listed.extend(places);
            } else {
                tables.push(Table::new(masks, &places, &rule));
            }
        }
        tables.shrink_to_fit();
        tables.sort_by_key(|table| table.first);
        listed.sort_unstable();
        listed.shrink_to_fit();
        let mut list = Vec::with_capacity(listed.len() * words);
        list.extend(listed.iter().flat_map(|place| rule(*place)));
        let scratch = RefCell::new(vec![0; words * 8].into());
        Self { tables, listed, list, words, scratch }
    }

    /// What a look costs at most, in instructions.
    pub(super) fn cost(&self) -> u64 {
        (self.tables.len() * (16 + self.words) + self.listed.len() * 3) as u64
    }

    /// The place of the first entry that a key fits.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        let mut scratch = self.scratch.borrow_mut();
        let mut best = u32::MAX;
        for table in &self.tables {
            if table.first >= best {
                break;
            }
            let words = key.as_chunks::<8>().0.iter().zip(scratch.as_chunks_mut::<8>().0);
            for ((word, masked), mask) in words.zip(&table.masks) {
                *masked = (u64::from_ne_bytes(*word) & mask).to_ne_bytes();
            }
            if let Some(found) = table.keys.find(&scratch) {
                best = best.min(table.places[found as usize]);
            }
        }
        let rules = self.list.chunks_exact(self.words);
        let others = self.listed.iter().zip(rules).take_while(|(place, _)| **place < best);
        let other = others.into_iter().find(|(_, rule)| fits(rule, key)).map(|(place, _)| *place);
        Some(other.unwrap_or(best)).filter(|best| *best != u32::MAX).map(|best| best as usize)
    }
}

impl Table {
    fn new<Rule: Iterator<Item = WordRange>>(
        masks: Vec<u64>,
        places: &[u32],
        rule: impl Fn(u32) -> Rule,
    ) -> Self {
        let mut keys = Hash::new(masks.len() * 8, places.len() as u32);
        let mut first_of = vec![u32::MAX; places.len()];
        for place in places {
            let key: Vec<u8> = rule(*place).flat_map(|word| word.from.to_ne_bytes()).collect();
            // There is room for all, and the first of equal ones stays.
            if let Ok(slot) = keys.make(&key) {
                let known = &mut first_of[slot as usize];
                *known = (*place).min(*known);
            }
        }
        Self { masks, keys, places: first_of, first: places[0] }
    }
}
