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

/// Number of registers without the frame pointer.
const REGISTERS: usize = 10;
/// The register in which a program gets its metadata.
const METADATA: usize = 2;

type Registers = [Kind; REGISTERS];

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
        let mut first = [Kind::Number; REGISTERS];
        first[METADATA] = Kind::Metadata;
        let mut open = vec![(flow.entry, flow.entry)];
        kinds.at.insert((flow.entry, flow.entry), first);
        // Two passes: the second one knows the spilled registers of the whole function.
        for _ in 0..2 {
            let mut visits = 0;
            while let Some((function, block)) = open.pop() {
                visits += 1;
                if visits > MAX_VISITS {
                    break;
                }
                kinds.propagate(flow, function, block, &mut open);
            }
            open = kinds.at.keys().copied().collect();
        }
        kinds
    }

    /// Merges the kinds at the end of a block into its successors, and those of arguments into called
    /// functions. Adds the blocks that this has changed to `open`.
    fn propagate(
        &mut self,
        flow: &Flow,
        function: usize,
        block: usize,
        open: &mut Vec<(usize, usize)>,
    ) {
        let mut registers = self.start(function, block);
        for (at, instruction) in flow.instructions(block) {
            if instruction.opcode == opcode::CALL && instruction.source == callee::LOCAL {
                let to = target(at, i64::from(instruction.immediate));
                let mut arguments = [Kind::Number; REGISTERS];
                arguments[1..6].copy_from_slice(&registers[1..6]);
                if self.merge_into_block((to, to), arguments) {
                    open.push((to, to));
                }
            }
            self.step(function, &mut registers, instruction);
        }
        for to in flow.successors(flow.last(block)).into_iter().flatten() {
            if self.merge_into_block((function, to), registers) {
                open.push((function, to));
            }
        }
    }

    /// Register kinds at the start of a block.
    pub(crate) fn start(&self, function: usize, block: usize) -> Registers {
        self.at.get(&(function, block)).copied().unwrap_or([Kind::Mixed; REGISTERS])
    }

    /// Returns true if this has changed the kinds at the start of the block.
    fn merge_into_block(&mut self, block: (usize, usize), more: Registers) -> bool {
        let Some(known) = self.at.get_mut(&block) else {
            self.at.insert(block, more);
            return true;
        };
        let before = *known;
        for (known, more) in known.iter_mut().zip(more) {
            *known = join(*known, more);
        }
        *known != before
    }

    /// Updates the register kinds for one instruction.
    pub(crate) fn step(
        &mut self,
        function: usize,
        registers: &mut Registers,
        instruction: Instruction,
    ) {
        let kind = |register: u8| match register {
            FRAME => Kind::Stack,
            register => registers[usize::from(register)],
        };
        let destination = usize::from(instruction.destination);
        match instruction.opcode {
            opcode::LOAD_WIDE => {
                registers[destination] = match instruction.source {
                    wide::MAP => Kind::Map(instruction.immediate as usize),
                    _ => Kind::Number,
                };
            }
            MOVE => registers[destination] = kind(instruction.source),
            ADD_NUMBER | SUB_NUMBER => {}
            ADD | SUB => {
                registers[destination] =
                    join(kind(instruction.destination), kind(instruction.source));
            }
            opcode::CALL => {
                let answer = match (instruction.source, instruction.immediate) {
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
            LOAD if instruction.source == FRAME => {
                let kept = self.spilled.get(&(function, instruction.offset));
                registers[destination] = kept.copied().unwrap_or(Kind::Number);
            }
            STORE if instruction.destination == FRAME => {
                let stored = kind(instruction.source);
                let kept = self.spilled.entry((function, instruction.offset)).or_insert(stored);
                *kept = join(*kept, stored);
            }
            _ if matches!(instruction.class(), class::LDX | class::ALU | class::ALU64) => {
                registers[destination] = Kind::Number
            }
            _ => {}
        }
    }
}

/// Join of two kinds. A number joined with a pointer is an offset, or a null that a test excludes.
fn join(one: Kind, other: Kind) -> Kind {
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
