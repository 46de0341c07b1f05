//! Memory of changes. A field that a client leaves out, or gives in one byte, takes the width of the field.

use crate::data::Data;
use crate::device::{Call, Change, Key, Match, Target};
use crate::store::Effect;
use crate::values::Bits;

/// Overhead of an allocation.
const OVERHEAD: usize = 32;

/// Upper bound of the memory of a change and its effect on the store, in bytes.
pub(crate) fn of(change: &Change, effect: &Effect) -> usize {
    let of_change = match change {
        Change::Insert(entry) | Change::Modify(entry) => key(&entry.key) + call(&entry.call),
        Change::Delete { key: of, .. } => key(of),
        Change::Default { call: of, .. } => of.as_ref().map_or(0, call),
        Change::DirectCounter { of, .. } | Change::DirectMeter { of, .. } => match of {
            Target::Entry(of) => key(of),
            Target::Default => 0,
        },
        Change::Counter { .. } | Change::Meter { .. } => 0,
        Change::Register { data, .. } => Data::memory(data),
        Change::ValueSet { members, .. } => members.iter().map(|one| matches(one)).sum(),
    };
    let of_effect = match effect {
        Effect::Row { row: Some(row), .. } => OVERHEAD + call(&row.call) + row.metadata.len(),
        Effect::Default { row, .. } => row.call.as_ref().map_or(0, call) + row.metadata.len(),
        Effect::Set { members, .. } => members.iter().map(|one| matches(one)).sum(),
        _ => 0,
    };
    size_of::<Change>() + size_of::<Effect>() + of_change + of_effect
}

fn key(key: &Key) -> usize {
    OVERHEAD + size_of::<Key>() + matches(&key.matches)
}

fn matches(all: &[Match]) -> usize {
    let one = |one: &Match| match one {
        Match::Exact(value) | Match::Lpm { value, .. } | Match::Optional(Some(value)) => {
            bits(value)
        }
        Match::Ternary { value, mask } => bits(value) + bits(mask),
        Match::Range { low, high } => bits(low) + bits(high),
        Match::Optional(None) => 0,
    };
    OVERHEAD + size_of_val(all) + all.iter().map(one).sum::<usize>()
}

fn call(call: &Call) -> usize {
    OVERHEAD + size_of::<Call>() + call.arguments.iter().map(bits).sum::<usize>()
}

fn bits(bits: &Bits) -> usize {
    size_of::<Bits>() + OVERHEAD + bits.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::{Direct, Entry};
    use crate::store::Row;

    #[test]
    fn a_change_takes_the_width_of_its_fields() {
        let bits = |bytes: usize| vec![0; bytes].into_boxed_slice();
        let of_width = |bytes: usize| {
            let field = Match::Ternary { value: bits(bytes), mask: bits(bytes) };
            let key = Arc::new(Key { matches: vec![field; 512], priority: 1 });
            let call = Call { action: 1, arguments: vec![bits(bytes)] };
            let row = Row {
                call: call.clone(),
                meter: None,
                metadata: vec![0; 100],
                cookie: 0,
                constant: false,
            };
            let effect = Effect::Row { table: 1, key: Arc::clone(&key), row: Some(Arc::new(row)) };
            let entry = Entry { table: 1, key, call, direct: Direct::default() };
            of(&Change::Modify(entry), &effect)
        };
        assert!((50_000..200_000).contains(&of_width(1)), "{}", of_width(1));
        assert_eq!(of_width(11) - of_width(1), 10 * (2 * 512 + 2));
    }
}
