//! Index for large ternary tables: entries with the same masks share a hash table (tuple space
//! search; Srinivasan, Suri and Varghese, 1999). Entries with ranges, or with masks that few
//! entries use, stay in a list. The index is rebuilt after changes by the control plane.

use std::cell::RefCell;
use std::collections::BTreeMap;

use p4_object::WordRange;

use super::hash::Hash;

/// Smaller tables use only the list, which is as fast: 16 ns for 32 entries.
const LEAST: usize = 32;
/// Cost of a hash table lookup, in list entries.
const LEAST_IN_TABLE: usize = 16;

/// The index. It identifies entries by their position in match order.
#[derive(Debug)]
pub(super) struct Tuples {
    /// Hash tables, sorted by their first entries.
    tables: Vec<Table>,
    /// Positions of the remaining entries, in match order, and their words.
    listed: Vec<u32>,
    list: Vec<WordRange>,
    words: usize,
    /// Scratch buffer for masked keys. Programs run one at a time.
    scratch: RefCell<Box<[u8]>>,
}

#[derive(Debug)]
struct Table {
    masks: Vec<u64>,
    keys: Hash,
    /// Position of the first entry of each key.
    places: Vec<u32>,
    first: u32,
}

/// Returns true if an entry matches a key.
pub(super) fn fits(rule: &[WordRange], key: &[u8]) -> bool {
    rule.iter().zip(key.as_chunks::<8>().0).all(|(rule, word)| {
        let word = u64::from_ne_bytes(*word) & rule.mask;
        rule.from <= word && word <= rule.to
    })
}

/// Cost of a comparison with a number of entries, in instructions: three for the first words of each, of
/// which usually one decides, and as many for each further eight.
pub(super) fn list_cost(entries: usize, words: usize) -> u64 {
    (entries * 3 * words.div_ceil(8)) as u64
}

impl Tuples {
    /// Maximum memory per entry, in bytes: words and position in the list, or values and position
    /// in a hash table. Hash tables are largest in relation if each has few entries, one more than
    /// a power of two.
    pub(super) fn needed(key_size: u32) -> u64 {
        let listed = size_of::<WordRange>() as u64 * u64::from(key_size / 8) + 4;
        listed.max(u64::from(key_size) + 60)
    }

    /// Builds an index of entries with `words` words each. `rule` returns an entry's words, by
    /// position.
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

    /// Cost of a lookup, in instructions.
    pub(super) fn cost(&self) -> u64 {
        (self.tables.len() * (16 + self.words)) as u64 + list_cost(self.listed.len(), self.words)
    }

    /// Position of the first entry that matches a key.
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
            // All keys fit. Of equal keys, the first entry wins.
            if let Ok(slot) = keys.make(&key) {
                let known = &mut first_of[slot as usize];
                *known = (*place).min(*known);
            }
        }
        Self { masks, keys, places: first_of, first: places[0] }
    }
}
