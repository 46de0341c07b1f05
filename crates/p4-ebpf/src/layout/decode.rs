//! Decoding of map contents into entries.

use num_bigint::{BigInt, Sign};
use num_traits::One;
use p4::interpret::tables::Match;
use p4::ir::{MatchKind, Value};
use p4_object::{Key, WordRange};

use super::{Encoding, KeyPart, Leaf, TableMaps, storage, words_of};

impl TableMaps {
    /// Decodes a key: the match of each part, in the form of its match kind (a prefix is a mask),
    /// and the priority. None if the key is not one of this table, or if a control plane cannot
    /// express it.
    pub fn read_key(&self, key: &Key) -> Option<(Vec<Match>, u32)> {
        let keys = self.keys.iter();
        match (key, self.encoding) {
            (Key::Words(words, priority), Encoding::Words) => {
                let mut rest = &words[..];
                let mut all = Vec::with_capacity(self.keys.len());
                for key in keys {
                    let (these, behind) =
                        rest.split_at_checked(words_of(key.leaf.width) as usize)?;
                    all.push(read_words(key, these)?);
                    rest = behind;
                }
                rest.is_empty().then_some((all, *priority))
            }
            (Key::Bytes(bytes), Encoding::Plain) if bytes.len() == self.key_size as usize => {
                let exact = |key: &KeyPart| Match::Exact(Value::Integer(get(bytes, &key.leaf)));
                Some((keys.map(exact).collect(), 0))
            }
            (Key::Bytes(bytes), Encoding::Wire) if bytes.len() == self.key_size as usize => {
                let all: Option<_> = keys.map(|key| self.read_prefix(key, bytes)).collect();
                Some((all?, 0))
            }
            _ => None,
        }
    }

    /// Decodes a part of a trie's key.
    fn read_prefix(&self, key: &KeyPart, bytes: &[u8]) -> Option<Match> {
        let Leaf { width, offset, .. } = key.leaf;
        let size = width.div_ceil(8);
        let value = bytes.get(offset as usize..(offset + size) as usize)?;
        let value = BigInt::from_bytes_be(Sign::Plus, value);
        if key.matched != MatchKind::Lpm {
            return Some(Match::Exact(Value::Integer(value)));
        }
        // The LPM part is the last: the prefix length includes the parts before it, and its zero
        // padding.
        let (length, _) = bytes.split_first_chunk::<4>()?;
        let before = (offset - 4) * 8 + size * 8 - width;
        let length = u32::from_le_bytes(*length).checked_sub(before)?;
        let mask = (BigInt::one() << width) - (BigInt::one() << width.checked_sub(length)?);
        Some(Match::Mask(value & &mask, mask))
    }

    /// Decodes a value: the index of the action, and the numbers of each of its arguments. None if
    /// the value is not one of this table.
    pub fn read_value(&self, value: &[u8]) -> Option<(usize, Vec<Vec<BigInt>>)> {
        let (action, _) = value.split_first_chunk::<4>()?;
        let action = u32::from_le_bytes(*action) as usize;
        if value.len() != self.value_size as usize {
            return None;
        }
        let arguments = self.actions.get(action)?.iter();
        Some((action, arguments.map(|leaves| read_numbers(leaves, value)).collect()))
    }
}

/// Reads numbers from a value.
pub fn read_numbers(leaves: &[Leaf], bytes: &[u8]) -> Vec<BigInt> {
    leaves.iter().map(|leaf| get(bytes, leaf)).collect()
}

/// Writes numbers into a value.
pub fn put_numbers(leaves: &[Leaf], bytes: &mut [u8], numbers: &[BigInt]) {
    for (leaf, number) in leaves.iter().zip(numbers) {
        super::entries::put(bytes, leaf, number);
    }
}

/// Reads a number; missing bytes are 0.
fn get(bytes: &[u8], leaf: &Leaf) -> BigInt {
    let start = leaf.offset as usize;
    let bytes = bytes.get(start..start + storage(leaf.width).0 as usize).unwrap_or_default();
    let value = match leaf.width {
        0..=64 => BigInt::from_bytes_le(Sign::Plus, bytes),
        _ => BigInt::from_bytes_be(Sign::Plus, bytes),
    };
    value & ((BigInt::one() << leaf.width) - 1)
}

/// Decodes a part of a ternary key.
fn read_words(key: &KeyPart, words: &[WordRange]) -> Option<Match> {
    let number = |of: fn(&WordRange) -> u64| {
        let words = words.iter().rev();
        words.fold(BigInt::ZERO, |all, word| (all << 64_u32) + of(word))
    };
    let (mask, from, to) =
        (number(|word| word.mask), number(|word| word.from), number(|word| word.to));
    let all: BigInt = (BigInt::one() << key.leaf.width) - 1;
    let whole = &mask & &all == all;
    match key.matched {
        _ if mask == BigInt::ZERO && from == mask && to == mask => Some(Match::Any),
        MatchKind::Range if whole && from <= to => Some(Match::Range(from, to)),
        MatchKind::Range => None,
        _ if from != to => None,
        MatchKind::Exact | MatchKind::Optional if whole => Some(Match::Exact(Value::Integer(from))),
        MatchKind::Ternary | MatchKind::Lpm => Some(Match::Mask(from, mask & all)),
        _ => None,
    }
}
