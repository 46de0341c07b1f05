//! Predicts the pointer kind of each register. It only selects the bounds to check first.

use std::collections::BTreeMap;

use p4_object::opcode::{self, MEMORY, REGISTER, alu, class, size};
use p4_object::{FRAME, Instruction, callee, helper, wide};

use crate::flow::{Flow, target};

/// Predicted pointer kind of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Not a pointer.
    Number,
    Packet,
    Metadata,
    Stack,
    /// Pointer to a value of this map.
    Value(usize),
    /// Pointer to a value of one of two maps: a table's entries and its default action.
    Values(usize, usize),
    /// Handle of this map.
    Map(usize),
    /// Different kinds on different paths.
    Mixed,
}

type Registers = [Kind; 10];

/// Register kinds at the start of each block, by function and block.
#[derive(Debug)]
pub(crate) struct Kinds {
    at: BTreeMap<(usize, usize), Registers>,
    /// Kinds of spilled registers, by function and frame offset.
    spilled: BTreeMap<(usize, i16), Kind>,
}

// Instructions that preserve a pointer: 64-bit moves, additions, subtractions, spills and fills.
const MOVE: u8 = class::ALU64 | REGISTER | alu::MOV;
const ADD: u8 = class::ALU64 | REGISTER | alu::ADD;
const SUB: u8 = class::ALU64 | REGISTER | alu::SUB;
const ADD_NUMBER: u8 = class::ALU64 | alu::ADD;
const SUB_NUMBER: u8 = class::ALU64 | alu::SUB;
const LOAD: u8 = class::LDX | MEMORY | size::DOUBLE;
const STORE: u8 = class::STX | MEMORY | size::DOUBLE;

/// Maximum number of block visits. Beyond it, the kinds found so far are used.
const MAX_VISITS: usize = 1 << 18;

impl Kinds {
    pub(crate) fn new(flow: &Flow) -> Self {
        let mut kinds = Self { at: BTreeMap::new(), spilled: BTreeMap::new() };
        let mut first = [Kind::Number; 10];
        first[2] = Kind::Metadata;
        let mut open = vec![(flow.entry, flow.entry)];
        kinds.at.insert((flow.entry, flow.entry), first);
        // Two passes: the second one knows the spilled registers of the whole function.
        for _ in 0..2 {
            let mut looked = 0;
            while let Some((function, block)) = open.pop() {
                looked += 1;
                if looked > MAX_VISITS {
                    break;
                }
                let mut registers = kinds.start(function, block);
                for (at, one) in flow.instructions(block) {
                    if one.opcode == opcode::CALL && one.source == callee::LOCAL {
                        let to = target(at, i64::from(one.immediate));
                        let mut arguments = [Kind::Number; 10];
                        arguments[1..6].copy_from_slice(&registers[1..6]);
                        if kinds.join((to, to), arguments) {
                            open.push((to, to));
                        }
                    }
                    kinds.step(function, &mut registers, one);
                }
                for to in flow.successors(flow.last(block)).into_iter().flatten() {
                    if kinds.join((function, to), registers) {
                        open.push((function, to));
                    }
                }
            }
            open = kinds.at.keys().copied().collect();
        }
        kinds
    }

    /// Register kinds at the start of a block.
    pub(crate) fn start(&self, function: usize, block: usize) -> Registers {
        self.at.get(&(function, block)).copied().unwrap_or([Kind::Mixed; 10])
    }

    fn join(&mut self, place: (usize, usize), more: Registers) -> bool {
        let Some(known) = self.at.get_mut(&place) else {
            self.at.insert(place, more);
            return true;
        };
        let before = *known;
        for (known, more) in known.iter_mut().zip(more) {
            *known = both(*known, more);
        }
        *known != before
    }

    /// Updates the register kinds for one instruction.
    pub(crate) fn step(&mut self, function: usize, registers: &mut Registers, one: Instruction) {
        let kind = |register: u8| match register {
            FRAME => Kind::Stack,
            register => registers[usize::from(register)],
        };
        let destination = usize::from(one.destination);
        match one.opcode {
            opcode::LOAD_WIDE => {
                registers[destination] = match one.source {
                    wide::MAP => Kind::Map(one.immediate as usize),
                    _ => Kind::Number,
                };
            }
            // 64-bit moves, additions and subtractions preserve the pointer kind.
            MOVE => registers[destination] = kind(one.source),
            ADD_NUMBER | SUB_NUMBER => {}
            ADD | SUB => {
                registers[destination] = both(kind(one.destination), kind(one.source));
            }
            opcode::CALL => {
                let answer = match (one.source, one.immediate) {
                    (callee::HELPER, helper::MAP_LOOKUP) => match registers[1] {
                        Kind::Map(map) => Kind::Value(map),
                        _ => Kind::Mixed,
                    },
                    (callee::HELPER, helper::ADJUST_HEAD | helper::PACKET_DATA) => Kind::Packet,
                    _ => Kind::Number,
                };
                registers[..6].fill(Kind::Number);
                registers[0] = answer;
            }
            LOAD if one.source == FRAME => {
                let kept = self.spilled.get(&(function, one.offset));
                registers[destination] = kept.copied().unwrap_or(Kind::Number);
            }
            STORE if one.destination == FRAME => {
                let stored = kind(one.source);
                let kept = self.spilled.entry((function, one.offset)).or_insert(stored);
                *kept = both(*kept, stored);
            }
            _ if matches!(one.class(), class::LDX | class::ALU | class::ALU64) => {
                registers[destination] = Kind::Number
            }
            _ => {}
        }
    }
}

/// Join of two kinds. A number joined with a pointer is an offset, or a null that a test excludes.
fn both(one: Kind, other: Kind) -> Kind {
    match (one, other) {
        (Kind::Number, kind) | (kind, Kind::Number) => kind,
        (one, other) if one == other => one,
        (Kind::Value(one), Kind::Value(other)) => Kind::Values(one.min(other), one.max(other)),
        (Kind::Values(first, second), Kind::Value(one))
        | (Kind::Value(one), Kind::Values(first, second))
            if one == first || one == second =>
        {
            Kind::Values(first, second)
        }
        _ => Kind::Mixed,
    }
}
