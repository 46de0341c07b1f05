//! Tests that written entries are read back unchanged.

use p4::ir::MatchKind;
use p4_ebpf::layout::{Direct, KeyPart, Leaf, TableMaps};
use proptest::prelude::*;

use crate::device::{Call, Key, Match};
use crate::sandboxed::layouts::TableAt;
use crate::values::{self, Bits};

/// A value of this width from arbitrary bytes.
fn value(width: u32, bytes: &[u8]) -> Bits {
    let mut all = bytes.to_vec();
    all.resize(width.div_ceil(8) as usize, 0);
    let ones = values::ones(width);
    all.iter().zip(&ones).map(|(byte, ones)| byte & ones).collect()
}

fn masked(value: &Bits, mask: &Bits) -> Bits {
    value.iter().zip(mask).map(|(value, mask)| value & mask).collect()
}

fn one(kind: MatchKind, width: u32, bytes: &[u8], others: &[u8], number: u32) -> Match {
    let (value, other) = (value(width, bytes), value(width, others));
    match kind {
        MatchKind::Exact => Match::Exact(value),
        MatchKind::Lpm => {
            let length = number % (width + 1);
            Match::Lpm { value: masked(&value, &values::prefix(length, width)), length }
        }
        MatchKind::Ternary => Match::Ternary { value: masked(&value, &other), mask: other },
        MatchKind::Range if number.is_multiple_of(8) => {
            Match::Range { low: values::zero(width), high: values::ones(width) }
        }
        MatchKind::Range if value <= other => Match::Range { low: value, high: other },
        MatchKind::Range => Match::Range { low: other, high: value },
        MatchKind::Optional => Match::Optional((!number.is_multiple_of(3)).then_some(value)),
    }
}

fn kinds() -> impl Strategy<Value = Vec<(MatchKind, u32)>> {
    let wide = prop_oneof![1..=9_u32, 1..=64_u32, 60..=200_u32];
    let exact = || wide.clone().prop_map(|width| (MatchKind::Exact, width));
    let lpm = || wide.clone().prop_map(|width| (MatchKind::Lpm, width));
    let any = prop_oneof![
        exact(),
        lpm(),
        wide.clone().prop_map(|width| (MatchKind::Ternary, width)),
        (1..=64_u32).prop_map(|width| (MatchKind::Range, width)),
        wide.clone().prop_map(|width| (MatchKind::Optional, width)),
    ];
    prop_oneof![
        prop::collection::vec(exact(), 1..6),
        (prop::collection::vec(exact(), 0..4), lpm(), 0..4_usize).prop_map(
            |(mut all, prefix, at)| {
                all.insert(at.min(all.len()), prefix);
                all
            }
        ),
        prop::collection::vec(any, 1..6),
    ]
}

proptest! {
    #[test]
    fn entries_come_back_as_they_were(
        kinds in kinds(),
        actions in prop::collection::vec(prop::collection::vec(1..=130_u32, 0..5), 1..4),
        bytes in prop::collection::vec((any::<[u8; 25]>(), any::<[u8; 25]>(), any::<u32>()), 6),
        (number, priority) in (any::<usize>(), 1..i32::MAX),
    ) {
        let leaf = |width: &u32| vec![Leaf::new(*width)];
        let keys = kinds.iter();
        let keys = keys.map(|(kind, width)| KeyPart { matched: *kind, leaf: Leaf::new(*width) });
        let arguments = actions.iter().map(|all| all.iter().map(leaf).collect());
        let laid = TableMaps::of_shape(keys.collect(), arguments.collect(), Direct::default());
        prop_assume!(laid.is_ok());
        let at = TableMaps { entries: Some(1), default_action: Some(2), ..laid.unwrap() };
        let ids: Vec<u32> = (0..actions.len() as u32).map(|at| 0x0100_0000 | (7 + at)).collect();
        let table = TableAt { name: "t".into(), at, actions: ids.clone() };

        let parts = kinds.iter().zip(&bytes);
        let matches = parts.map(|((kind, width), (bytes, others, number))| {
            one(*kind, *width, bytes, others, *number)
        });
        let priority = if table.at.has_priorities() { priority } else { 0 };
        let key = Key { matches: matches.collect(), priority };
        let action = number % actions.len();
        let parts = actions[action].iter().zip(&bytes);
        let arguments = parts.map(|(width, (bytes, _, _))| value(*width, bytes));
        let call = Call { action: ids[action], arguments: arguments.collect() };

        let entry = table.entry(&key, &call).unwrap();
        prop_assert_eq!(table.key(&key), Some((1, entry.key.clone())));
        prop_assert_eq!(table.read_key(&entry.key), Some(key));
        prop_assert_eq!(table.read_call(&entry.value), Some(call.clone()));
        let default = table.default_entry(&call).unwrap();
        prop_assert_eq!((default.map, &default.value), (2, &entry.value));
    }

    /// Arbitrary map bytes decode to an entry or to nothing, without a panic.
    #[test]
    fn any_bytes_are_read(
        kinds in kinds(),
        key in prop::collection::vec(any::<u8>(), 0..80),
        argument in 1..=130_u32,
    ) {
        let keys = kinds.iter();
        let keys = keys.map(|(kind, width)| KeyPart { matched: *kind, leaf: Leaf::new(*width) });
        let laid = TableMaps::of_shape(keys.collect(), vec![vec![vec![Leaf::new(argument)]]], Direct::default());
        prop_assume!(laid.is_ok());
        let table = TableAt { name: "t".into(), at: laid.unwrap(), actions: vec![1] };
        let mut sized = key.clone();
        sized.resize(table.at.key_size as usize, 0xff);
        for bytes in [key, sized] {
            let words = bytes.chunks(3).map(|all| p4_object::WordRange {
                mask: u64::from(all[0]) << (all[0] % 57),
                from: all.get(1).map_or(0, |byte| u64::from(*byte)),
                to: all.last().map_or(0, |byte| u64::from(*byte)),
            });
            let words = p4_object::Key::Words(words.collect(), 7);
            for key in [p4_object::Key::Bytes(bytes.clone()), words] {
                if let Some(read) = table.read_key(&key) {
                    prop_assert_eq!(read.matches.len(), kinds.len());
                }
            }
            let _ = table.read_call(&bytes);
        }
    }
}
