//! Ordering of parallel moves.

use super::registers::Place;
use crate::flat::ValueId;

/// Source of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The content of a register or a stack word.
    Place(Place),
    /// A rematerialised value.
    Value(ValueId),
}

/// Scratch register that breaks cycles.
const WAITING: Place = Place::Register(5);

/// Orders parallel moves so that no source is overwritten before it is read.
pub(super) fn in_order(mut moves: Vec<(Place, Source)>) -> Vec<(Place, Source)> {
    moves.retain(|(to, from)| Source::Place(*to) != *from);
    let mut ordered = Vec::with_capacity(moves.len());
    while !moves.is_empty() {
        let is_read = |to: Place, moves: &[(Place, Source)]| {
            moves.iter().any(|(_, from)| *from == Source::Place(to))
        };
        match moves.iter().position(|(to, _)| !is_read(*to, &moves)) {
            Some(at) => ordered.push(moves.swap_remove(at)),
            None => {
                // Only cycles are left: save one destination in the scratch register.
                let (to, _) = moves[0];
                ordered.push((WAITING, Source::Place(to)));
                for (_, from) in &mut moves {
                    if *from == Source::Place(to) {
                        *from = Source::Place(WAITING);
                    }
                }
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten_before_it_is_moved() {
        let register = Place::Register;
        // r1 and r2 are swapped, r3 becomes r1, and r4 and a stack word are swapped.
        let moves = vec![
            (register(1), Source::Place(register(2))),
            (register(2), Source::Place(register(1))),
            (register(3), Source::Place(register(1))),
            (Place::Stack(0), Source::Place(register(4))),
            (register(4), Source::Place(Place::Stack(0))),
        ];
        let mut held: std::collections::HashMap<Place, u32> =
            (1..=4).map(|at| (register(at), u32::from(at))).collect();
        held.insert(Place::Stack(0), 10);
        for (to, from) in in_order(moves) {
            let Source::Place(from) = from else { panic!("{from:?}") };
            let value = held[&from];
            held.insert(to, value);
        }
        let now = |place: Place| held[&place];
        assert_eq!([now(register(1)), now(register(2)), now(register(3))], [2, 1, 1]);
        assert_eq!((now(register(4)), now(Place::Stack(0))), (10, 4));
    }
}
