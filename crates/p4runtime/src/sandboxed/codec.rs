//! Conversion of entries and cells between P4Runtime and map format.

use num_bigint::{BigInt, Sign};
use p4::interpret::tables::{Entry as Written, Match as Wanted};
use p4::ir::{MatchKind, Value};
use p4_ebpf::layout::{put_numbers, read_numbers, words};

use super::layouts::{DigestAt, RegisterAt, SetAt, TableAt};
use crate::data::Data;
use crate::device::{Call, Key, Match};
use crate::types::Type;
use crate::values::{self, Bits};

fn number(bits: &[u8]) -> BigInt {
    BigInt::from_bytes_be(Sign::Plus, bits)
}

/// A value of this width; `None` if it is negative or too wide.
fn bits(number: &BigInt, width: u32) -> Option<Bits> {
    let (sign, bytes) = number.to_bytes_be();
    values::unsigned(&bytes, width).filter(|_| sign != Sign::Minus)
}

fn wanted(one: &Match, width: u32) -> Wanted {
    match one {
        Match::Exact(value) | Match::Optional(Some(value)) => {
            Wanted::Exact(Value::Integer(number(value)))
        }
        Match::Optional(None) => Wanted::Any,
        Match::Lpm { value, length } => {
            Wanted::Mask(number(value), number(&values::prefix(*length, width)))
        }
        Match::Ternary { value, mask } => Wanted::Mask(number(value), number(mask)),
        Match::Range { low, high } => Wanted::Range(number(low), number(high)),
    }
}

/// Converts a part of a map key to a match.
fn matched(one: &Wanted, kind: MatchKind, width: u32) -> Option<Match> {
    let bits = |number: &BigInt| bits(number, width);
    Some(match (kind, one) {
        (MatchKind::Exact, Wanted::Exact(Value::Integer(value))) => Match::Exact(bits(value)?),
        (MatchKind::Optional, Wanted::Exact(Value::Integer(value))) => {
            Match::Optional(Some(bits(value)?))
        }
        (MatchKind::Optional, Wanted::Any) => Match::Optional(None),
        (MatchKind::Lpm, Wanted::Any) => Match::Lpm { value: values::zero(width), length: 0 },
        (MatchKind::Lpm, Wanted::Mask(value, mask)) => {
            let (value, mask) = (bits(value)?, bits(mask)?);
            let length = mask.iter().map(|byte| byte.count_ones()).sum();
            let is_prefix = *mask == *values::prefix(length, width);
            is_prefix.then_some(Match::Lpm { value, length })?
        }
        (MatchKind::Ternary, Wanted::Any) => {
            Match::Ternary { value: values::zero(width), mask: values::zero(width) }
        }
        (MatchKind::Ternary, Wanted::Mask(value, mask)) => {
            Match::Ternary { value: bits(value)?, mask: bits(mask)? }
        }
        (MatchKind::Range, Wanted::Any) => {
            Match::Range { low: values::zero(width), high: values::ones(width) }
        }
        (MatchKind::Range, Wanted::Range(low, high)) => {
            Match::Range { low: bits(low)?, high: bits(high)? }
        }
        _ => return None,
    })
}

impl TableAt {
    fn action(&self, call: &Call) -> Option<(usize, Vec<Value>)> {
        let action = self.actions.iter().position(|id| *id == call.action)?;
        let arguments = call.arguments.iter();
        Some((action, arguments.map(|one| Value::Integer(number(one))).collect()))
    }

    fn written(&self, key: &Key, action: (usize, Vec<Value>)) -> Written {
        let keys = self.at.keys.iter().zip(&key.matches);
        let keys = keys.map(|(part, one)| wanted(one, part.leaf.width)).collect();
        // The service has checked that the priority is positive, or zero if unused.
        Written { keys, priority: u32::try_from(key.priority).unwrap_or(0), action }
    }

    /// Converts an entry to its map; `None` if the table has no key or not this action.
    pub(super) fn entry(&self, key: &Key, call: &Call) -> Option<p4_object::Entry> {
        self.at.entry(&self.written(key, self.action(call)?))
    }

    /// Map and key of an entry.
    pub(super) fn key(&self, key: &Key) -> Option<(u32, p4_object::Key)> {
        let blank = (0, Vec::new());
        self.at.entry(&self.written(key, blank)).map(|entry| (entry.map, entry.key))
    }

    /// Converts a default action; `None` if it is constant or not one of the table's actions.
    pub(super) fn default_entry(&self, call: &Call) -> Option<p4_object::Entry> {
        let (action, arguments) = self.action(call)?;
        self.at.default_entry(action, &arguments)
    }

    /// Converts a map key; `None` if P4Runtime cannot express it.
    pub(super) fn read_key(&self, key: &p4_object::Key) -> Option<Key> {
        let (wanted, priority) = self.at.read_key(key)?;
        let parts = wanted.iter().zip(&self.at.keys);
        let matches = parts.map(|(one, part)| matched(one, part.matched, part.leaf.width));
        let priority = if self.at.has_priorities() { i32::try_from(priority).ok()? } else { 0 };
        Some(Key { matches: matches.collect::<Option<_>>()?, priority })
    }

    /// Converts the action in a map value.
    pub(super) fn read_call(&self, value: &[u8]) -> Option<Call> {
        let (action, arguments) = self.at.read_value(value)?;
        let leaves = self.at.actions.get(action)?.iter().flatten();
        let arguments = arguments.iter().flatten().zip(leaves);
        let arguments = arguments.map(|(number, leaf)| bits(number, leaf.width));
        Some(Call {
            action: *self.actions.get(action)?,
            arguments: arguments.collect::<Option<_>>()?,
        })
    }
}

impl SetAt {
    /// Converts a member of a value set.
    pub(super) fn member(&self, matches: &[Match]) -> p4_object::Entry {
        let wanted = matches.first().map_or(Wanted::Any, |one| wanted(one, self.width));
        let words = words(MatchKind::Ternary, self.width, &wanted);
        p4_object::Entry { map: self.map, key: p4_object::Key::Words(words, 0), value: vec![0; 4] }
    }
}

impl DigestAt {
    /// Converts the payload of a digest; `None` if its size is wrong.
    pub(super) fn data(&self, bytes: &[u8]) -> Option<Data> {
        rebuild(&self.of, &mut read_numbers(&self.leaves, bytes).iter())
    }
}

impl RegisterAt {
    /// Encodes a register cell; `None` if the value has another type.
    pub(super) fn value(&self, data: &Data) -> Option<Vec<u8>> {
        let mut numbers = Vec::with_capacity(self.leaves.len());
        flatten(data, &mut numbers)?;
        if numbers.len() != self.leaves.len() {
            return None;
        }
        let mut bytes = vec![0; self.bytes as usize];
        put_numbers(&self.leaves, &mut bytes, &numbers);
        Some(bytes)
    }

    /// Decodes a register cell.
    pub(super) fn data(&self, bytes: &[u8]) -> Option<Data> {
        rebuild(&self.of, &mut read_numbers(&self.leaves, bytes).iter())
    }
}

fn flatten(data: &Data, numbers: &mut Vec<BigInt>) -> Option<()> {
    match data {
        Data::Bits(bits) => numbers.push(number(bits)),
        Data::Bool(is) => numbers.push(BigInt::from(u8::from(*is))),
        Data::Members(all) => all.iter().try_for_each(|one| flatten(one, numbers))?,
        Data::Header(_) => return None,
    }
    Some(())
}

/// Rebuilds a value from its flattened numbers.
fn rebuild(of: &Type, numbers: &mut std::slice::Iter<'_, BigInt>) -> Option<Data> {
    Some(match of {
        Type::Bits(field) => Data::Bits(bits(numbers.next()?, field.width)?),
        Type::Enum(width) => Data::Bits(bits(numbers.next()?, *width)?),
        Type::Bool => Data::Bool(*numbers.next()? != BigInt::ZERO),
        Type::Struct(all) | Type::Tuple(all) => {
            let members = all.iter().map(|one| rebuild(one, numbers));
            Data::Members(members.collect::<Option<_>>()?)
        }
        Type::Header(_) | Type::Other => return None,
    })
}
