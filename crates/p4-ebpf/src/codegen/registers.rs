//! Register allocation: assigns each value a register, or spills it to the stack, in order of
//! priority (Chow and Hennessy, Register Allocation by Priority-based Coloring, 1984).
//!
//! r0 and r5 are scratch registers. A call preserves only r6 to r9.

use std::collections::{BTreeMap, HashMap};

use super::liveness::{Life, Liveness};
use crate::flat::{BlockId, Graph, Op, ValueId};

/// Location of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A register.
    Register(u8),
    /// A word of the stack, counted from the highest address.
    Stack(u32),
}

/// Registers preserved across calls.
const KEPT: [u8; 4] = [6, 7, 8, 9];
/// All registers available for allocation.
const ALL: [u8; 8] = [1, 2, 3, 4, 6, 7, 8, 9];

/// Assigns locations to all values. Also returns the number of stack words that spilled values
/// take.
pub(super) fn places(
    graph: &Graph,
    order: &[BlockId],
    liveness: &Liveness,
) -> (HashMap<ValueId, Place>, u32) {
    let mut giver = Giver {
        wishes: wishes(graph, order),
        places: HashMap::new(),
        registers: Default::default(),
        stack: Vec::new(),
    };
    // Values with the most uses relative to the length of their live range come first.
    let mut lives: Vec<_> = liveness.lives.iter().collect();
    let worth = |life: &Life| u64::from(life.weight) * 4096 / u64::from(life.length().max(1));
    lives.sort_by_key(|life| (std::cmp::Reverse(worth(life)), life.value));
    for life in lives {
        giver.give(life, life.crosses(&liveness.calls));
    }
    (giver.places, giver.stack.len() as u32)
}

/// Collects register hints: values that should share a register, to avoid moves.
fn wishes(graph: &Graph, order: &[BlockId]) -> HashMap<ValueId, Vec<Wish>> {
    let mut wishes: HashMap<ValueId, Vec<Wish>> = HashMap::new();
    for block in order {
        let block = &graph.blocks[block.index()];
        for phi in &block.phis {
            for operand in graph.op(*phi).operands() {
                wishes.entry(*phi).or_default().push(Wish::With(operand));
                wishes.entry(operand).or_default().push(Wish::With(*phi));
            }
        }
        for value in &block.body {
            match graph.op(*value) {
                Op::Binary(_, left, _) | Op::Swap(_, left) => {
                    wishes.entry(*value).or_default().push(Wish::With(*left));
                }
                Op::Select(_, _, no) => {
                    wishes.entry(*value).or_default().push(Wish::With(*no));
                }
                Op::Argument(at) => wishes.entry(*value).or_default().push(Wish::In(at + 1)),
                Op::Call(_, arguments) => {
                    for (register, argument) in (1..).zip(arguments) {
                        wishes.entry(*argument).or_default().push(Wish::In(register));
                    }
                }
                _ => {}
            }
        }
    }
    wishes
}

enum Wish {
    With(ValueId),
    In(u8),
}

/// Occupied intervals, from start to end.
type Taken = BTreeMap<u32, u32>;

/// Returns true if the whole live range is unoccupied.
fn is_free(taken: &Taken, life: &Life) -> bool {
    life.ranges.iter().all(|(from, to)| {
        let before = taken.range(..*to).next_back();
        before.is_none_or(|(_, end)| end <= from)
    })
}

fn take(taken: &mut Taken, life: &Life) {
    taken.extend(life.ranges.iter().copied());
}

/// State of the allocator.
struct Giver {
    wishes: HashMap<ValueId, Vec<Wish>>,
    places: HashMap<ValueId, Place>,
    registers: [Taken; 10],
    stack: Vec<Taken>,
}

impl Giver {
    fn give(&mut self, life: &Life, crosses_call: bool) {
        let allowed: &[u8] = if crosses_call { &KEPT } else { &ALL };
        let is_free_register = |giver: &Self, register: &u8| {
            allowed.contains(register) && is_free(&giver.registers[usize::from(*register)], life)
        };
        let wished = self.wishes.get(&life.value).into_iter().flatten().find_map(|wish| {
            let register = match wish {
                Wish::In(register) => *register,
                Wish::With(other) => match self.places.get(other)? {
                    Place::Register(register) => *register,
                    Place::Stack(_) => return None,
                },
            };
            is_free_register(self, &register).then_some(register)
        });
        let free =
            wished.or_else(|| allowed.iter().copied().find(|one| is_free_register(self, one)));
        if let Some(register) = free {
            take(&mut self.registers[usize::from(register)], life);
            self.places.insert(life.value, Place::Register(register));
            return;
        }
        // Too many already: the program is refused, so that no more are searched.
        if self.stack.len() > super::STACK_WORDS as usize {
            self.places.insert(life.value, Place::Stack(0));
            return;
        }
        let word = self.stack.iter().position(|taken| is_free(taken, life)).unwrap_or_else(|| {
            self.stack.push(Taken::new());
            self.stack.len() - 1
        });
        take(&mut self.stack[word], life);
        self.places.insert(life.value, Place::Stack(word as u32));
    }
}
