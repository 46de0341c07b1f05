//! Encoding of entries for maps.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive};
use p4::interpret::tables::{Entry as Written, Match};
use p4::ir::{Elaborated, MatchKind, PlacedObject, Program, Value};
use p4_object::{Digest, Entry, Key, WordRange};

use super::{DigestData, Encoding, Leaf, Maps, TableMaps, map_name, storage};

/// Converts a value to one number.
fn number(value: &Value) -> BigInt {
    match value {
        Value::Bool(value) => BigInt::from(u8::from(*value)),
        Value::Integer(value) => value.clone(),
        Value::Error(at) | Value::Member(at) => BigInt::from(*at),
        _ => BigInt::ZERO,
    }
}

/// Collects the numbers that a value consists of.
fn numbers(value: &Value, all: &mut Vec<BigInt>) {
    match value {
        Value::Record { fields, .. } => fields.iter().for_each(|one| numbers(one, all)),
        other => all.push(number(other)),
    }
}

/// Writes a number at its offset in a value.
pub(super) fn put(bytes: &mut [u8], leaf: &Leaf, value: &BigInt) {
    let (size, _) = storage(leaf.width);
    let mut wire = wire(value, leaf.width);
    if leaf.width <= 64 {
        wire.reverse();
    }
    wire.resize(size as usize, 0);
    let start = leaf.offset as usize;
    bytes[start..start + wire.len()].copy_from_slice(&wire);
}

/// Encodes a number in network byte order, in whole bytes.
fn wire(value: &BigInt, width: u32) -> Vec<u8> {
    let modulus = BigInt::one() << width;
    let value = ((value % &modulus) + &modulus) % &modulus;
    let digits = value.to_bytes_be().1;
    let mut bytes = vec![0; (width.div_ceil(8) as usize).saturating_sub(digits.len())];
    bytes.extend(digits);
    bytes.split_off(bytes.len() - width.div_ceil(8) as usize)
}

impl TableMaps {
    /// Encodes an action with its arguments.
    pub fn value(&self, action: usize, arguments: &[Value]) -> Vec<u8> {
        let mut bytes = vec![0; self.value_size as usize];
        bytes[..4].copy_from_slice(&(action as u32).to_le_bytes());
        for (leaves, argument) in self.actions[action].iter().zip(arguments) {
            let mut all = Vec::with_capacity(leaves.len());
            numbers(argument, &mut all);
            for (leaf, number) in leaves.iter().zip(&all) {
                put(&mut bytes, leaf, number);
            }
        }
        bytes
    }

    /// Encodes an entry; None if the table has no key.
    pub fn entry(&self, written: &Written) -> Option<Entry> {
        let map = self.entries?;
        let value = self.value(written.action.0, &written.action.1);
        let key = match self.encoding {
            Encoding::Words => Key::Words(self.words(&written.keys), written.priority),
            Encoding::Plain => {
                let mut bytes = vec![0; self.key_size as usize];
                for (key, wanted) in self.keys.iter().zip(&written.keys) {
                    put(&mut bytes, &key.leaf, &known(wanted).0);
                }
                Key::Bytes(bytes)
            }
            Encoding::Wire => Key::Bytes(self.prefix(&written.keys)),
        };
        Some(Entry { map, key, value })
    }

    /// Encodes the default action; None if it is constant.
    pub fn default_entry(&self, action: usize, arguments: &[Value]) -> Option<Entry> {
        let value = self.value(action, arguments);
        Some(Entry { map: self.default_action?, key: Key::index(0), value })
    }

    /// Encodes the key of a trie.
    fn prefix(&self, wanted: &[Match]) -> Vec<u8> {
        let mut bytes = vec![0; self.key_size as usize];
        let mut bits = 0;
        for (key, wanted) in self.keys.iter().zip(wanted) {
            let Leaf { width, offset, .. } = key.leaf;
            let (value, mask) = known(wanted);
            let ones = mask.map_or(u64::from(width), |mask| {
                wire(&mask, width).iter().map(|byte| u64::from(byte.count_ones())).sum()
            });
            // Zero padding up to the byte boundary precedes the number.
            bits += ones + u64::from(width.div_ceil(8) * 8 - width);
            let wire = wire(&value, width);
            bytes[offset as usize..offset as usize + wire.len()].copy_from_slice(&wire);
        }
        bytes[..4].copy_from_slice(&(bits as u32).to_le_bytes());
        bytes
    }

    fn words(&self, wanted: &[Match]) -> Vec<WordRange> {
        let mut all = Vec::with_capacity(self.key_size as usize / 8);
        for (key, wanted) in self.keys.iter().zip(wanted) {
            all.extend(words(key.matched, key.leaf.width, wanted));
        }
        all
    }

    /// Returns true if entries have a priority.
    pub fn has_priorities(&self) -> bool {
        self.encoding == Encoding::Words
    }
}

/// Encodes the match of one part of a ternary key, least significant word first. The encoding is
/// canonical, because entries are identified by their words.
pub fn words(kind: MatchKind, width: u32, wanted: &Match) -> Vec<WordRange> {
    let modulus = BigInt::one() << width;
    let word = |value: &BigInt, at: u32| {
        let value = ((value % &modulus) + &modulus) % &modulus;
        ((value >> (64 * at)) & BigInt::from(u64::MAX)).to_u64().unwrap_or_default()
    };
    let all = &modulus - 1;
    let masked = |value: &BigInt, mask: &BigInt, at: u32| {
        let mask = word(mask, at);
        let value = word(value, at) & mask;
        WordRange { mask, from: value, to: value }
    };
    let at = |at: u32| match wanted {
        Match::Any => WordRange { mask: 0, from: 0, to: 0 },
        Match::Range(from, to) if *from == BigInt::ZERO && *to == all => {
            WordRange { mask: 0, from: 0, to: 0 }
        }
        Match::Range(from, to) => {
            WordRange { mask: u64::MAX, from: word(from, at), to: word(to, at) }
        }
        Match::Exact(value) if kind == MatchKind::Range => {
            let value = word(&number(value), at);
            WordRange { mask: u64::MAX, from: value, to: value }
        }
        Match::Exact(value) => masked(&number(value), &all, at),
        Match::Mask(value, mask) => masked(value, mask, at),
    };
    (0..super::words_of(width)).map(at).collect()
}

/// Returns the value, and the mask if there is one.
fn known(wanted: &Match) -> (BigInt, Option<BigInt>) {
    match wanted {
        Match::Exact(value) => (number(value), None),
        Match::Mask(value, mask) => (value & mask, Some(mask.clone())),
        Match::Range(from, _) => (from.clone(), None),
        Match::Any => (BigInt::ZERO, Some(BigInt::ZERO)),
    }
}

impl Maps {
    /// Returns the digests of a program, indexed by the ids that its code uses.
    pub fn digests(&self, elaborated: &Elaborated) -> Vec<Digest> {
        let all = self.digests.iter().zip(&elaborated.objects);
        let digest = |(data, object): (&Option<DigestData>, &PlacedObject)| {
            let size = data.as_ref()?.size;
            Some(Digest { name: map_name(&object.name), size })
        };
        all.filter_map(digest).collect()
    }

    /// Returns the initial contents of the maps: constant entries and default actions.
    pub fn initial(&self, program: &Program, elaborated: &Elaborated) -> Vec<Entry> {
        let mut all = Vec::new();
        for (maps, (id, _)) in self.tables.iter().zip(&elaborated.tables) {
            let table = &program.tables[id.index()];
            for given in &table.entries {
                all.extend(maps.entry(&p4::interpret::tables::given_entry(given)));
            }
            let (action, arguments) = &table.default_action;
            all.extend(maps.default_entry(*action, arguments));
        }
        all
    }
}
