//! Registers and the stack: where values are, and how they get into a register and out of it.

use super::super::liveness::is_made_again;
use super::super::moves::Source;
use super::super::opcodes::{MOVE, MOVE_32, code, instruction, memory, number, small, two};
use super::super::registers::Place;
use super::{Emit, WAY};
use crate::flat::{Binary, Op, ValueId};
use crate::object::opcode::{self, class};
use crate::object::{FRAME, Instruction, wide};

impl Emit<'_> {
    pub(super) fn source(&self, value: ValueId) -> Source {
        match self.places.get(&value) {
            Some(place) => Source::Place(*place),
            None => Source::Value(value),
        }
    }

    /// Where a value is made: its register, or one that it is moved from.
    pub(super) fn target(&self, id: ValueId) -> u8 {
        match self.places.get(&id) {
            Some(Place::Register(register)) => *register,
            _ => WAY,
        }
    }

    /// Whether a value is in a register.
    pub(super) fn is_in(&self, value: ValueId, register: u8) -> bool {
        self.places.get(&value) == Some(&Place::Register(register))
    }

    /// A value that was made in a register goes where it belongs.
    pub(super) fn keep(&mut self, id: ValueId, register: u8) {
        if let Some(place) = self.places.get(&id) {
            self.put(*place, register);
        }
    }

    /// The register that a value is in; if it is in none, it comes into this one.
    pub(super) fn register(&mut self, value: ValueId, way: u8) -> u8 {
        match self.places.get(&value) {
            Some(Place::Register(register)) => *register,
            _ => {
                self.load(way, value);
                way
            }
        }
    }

    /// Where memory is: a register and an offset.
    pub(super) fn address(&mut self, base: ValueId, offset: i16, way: u8) -> (u8, i16) {
        match self.graph.op(base) {
            Op::Frame => (FRAME, offset - (self.frame * 8) as i16),
            _ => (self.register(base, way), offset),
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
                debug_assert!(!is_made_again(self.graph, value));
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

    /// Where a word of the stack is, from the frame pointer on.
    pub(super) fn offset(&self, word: u32) -> i16 {
        -((self.frame + word + 1) as i16 * 8)
    }

    pub(super) fn number(&mut self, to: u8, value: u64) {
        match small(value) {
            Some(small) => self.push(number(MOVE, to, small)),
            // 32 bits, with zeros above.
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
