//! Access to values in registers and on the stack.

use p4_object::opcode::{self, class};
use p4_object::{FRAME, Instruction, wide};

use super::super::liveness::is_rematerialized;
use super::super::moves::Source;
use super::super::opcodes::{MOVE, MOVE_32, code, instruction, memory, number, small, two};
use super::super::registers::Place;
use super::{Emit, SCRATCH};
use crate::flat::{Binary, Op, ValueId};

impl Emit<'_> {
    pub(super) fn source(&self, value: ValueId) -> Source {
        match self.places.get(&value) {
            Some(place) => Source::Place(*place),
            None => Source::Value(value),
        }
    }

    /// Returns the register in which a value is computed: its own, or a scratch register if it is
    /// spilled.
    pub(super) fn target(&self, id: ValueId) -> u8 {
        match self.places.get(&id) {
            Some(Place::Register(register)) => *register,
            _ => SCRATCH,
        }
    }

    /// Returns true if a value is in a register.
    pub(super) fn is_in(&self, value: ValueId, register: u8) -> bool {
        self.places.get(&value) == Some(&Place::Register(register))
    }

    /// Moves a computed value from `register` to its location.
    pub(super) fn keep(&mut self, id: ValueId, register: u8) {
        if let Some(place) = self.places.get(&id) {
            self.put(*place, register);
        }
    }

    /// Returns the register that holds a value; if there is none, loads it into `scratch`.
    pub(super) fn register(&mut self, value: ValueId, scratch: u8) -> u8 {
        match self.places.get(&value) {
            Some(Place::Register(register)) => *register,
            _ => {
                self.load(scratch, value);
                scratch
            }
        }
    }

    /// Returns a memory address as a register and an offset.
    pub(super) fn address(&mut self, base: ValueId, offset: i16, scratch: u8) -> (u8, i16) {
        match self.graph.op(base) {
            Op::Frame => (FRAME, offset - (self.frame * 8) as i16),
            _ => (self.register(base, scratch), offset),
        }
    }

    pub(super) fn load(&mut self, to: u8, value: ValueId) {
        match self.graph.op(value) {
            Op::Constant(number) => self.number(to, *number),
            Op::Frame => {
                self.push(two(MOVE, to, FRAME));
                self.push(number(code(Binary::Add), to, -((self.frame * 8) as i32)));
            }
            Op::Map(map) => self.wide(to, wide::MAP, u64::from(*map)),
            Op::Undefined => {}
            _ => {
                debug_assert!(!is_rematerialized(self.graph, value));
                if let Some(place) = self.places.get(&value) {
                    self.get(to, *place);
                }
            }
        }
    }

    pub(super) fn get(&mut self, to: u8, from: Place) {
        match from {
            Place::Register(from) if from == to => {}
            Place::Register(from) => self.push(two(MOVE, to, from)),
            Place::Stack(word) => {
                let offset = self.offset(word);
                self.push(memory(class::LDX, 8, to, FRAME, offset));
            }
        }
    }

    pub(super) fn put(&mut self, to: Place, from: u8) {
        match to {
            Place::Register(to) if to == from => {}
            Place::Register(to) => self.push(two(MOVE, to, from)),
            Place::Stack(word) => {
                let offset = self.offset(word);
                self.push(memory(class::STX, 8, FRAME, from, offset));
            }
        }
    }

    /// Returns the offset of a stack word from the frame pointer.
    pub(super) fn offset(&self, word: u32) -> i16 {
        -((self.frame + word + 1) as i16 * 8)
    }

    pub(super) fn number(&mut self, to: u8, value: u64) {
        match small(value) {
            Some(small) => self.push(number(MOVE, to, small)),
            // A 32-bit move clears the upper half.
            None if value <= u64::from(u32::MAX) => {
                self.push(number(MOVE_32, to, value as u32 as i32));
            }
            None => self.wide(to, wide::NUMBER, value),
        }
    }

    fn wide(&mut self, to: u8, source: u8, value: u64) {
        let plain = instruction(opcode::LOAD_WIDE);
        let lower = value as u32 as i32;
        self.push(Instruction { destination: to, source, immediate: lower, ..plain });
        self.push(Instruction { immediate: (value >> 32) as i32, ..Instruction::default() });
    }
}
