//! Code for single values.

use p4_object::opcode::{self, class};
use p4_object::{Instruction, LinkedCall, callee};

use super::super::opcodes::{
    MOVE, MOVE_32, TO_BIG, code, instruction, memory, number, small, stored, test, two,
};
use super::super::registers::Place;
use super::jumps::Side;
use super::{Emit, SCRATCH, SECOND_SCRATCH};
use crate::flat::{Binary, Compare, Function, Op, Size, ValueId};

impl Emit<'_> {
    pub(super) fn value(&mut self, id: ValueId) {
        match self.graph.op(id).clone() {
            Op::Binary(operator, left, right) => self.binary(id, operator, left, right),
            Op::Compare(test, left, right) => self.comparison(id, test, left, right),
            Op::Select(condition, yes, no) => self.select(id, condition, yes, no),
            Op::Swap(size, of) => self.swap(id, size, of),
            Op::Load { base, offset, size, .. } => {
                let to = self.target(id);
                let (base, offset) = self.address(base, offset, SECOND_SCRATCH);
                self.push(memory(class::LDX, size, to, base, offset));
                self.keep(id, to);
            }
            Op::Store { base, offset, size, value } => self.store((base, offset), size, value),
            Op::Call(function, arguments) => self.call(id, function, &arguments),
            Op::Phi(_)
            | Op::Constant(_)
            | Op::Undefined
            | Op::Argument(_)
            | Op::Packet
            | Op::Field { .. }
            | Op::Frame
            | Op::Map(_) => {}
        }
    }

    /// Materialises a comparison as 1 or 0.
    fn comparison(&mut self, id: ValueId, test: Compare, left: ValueId, right: ValueId) {
        let to = self.target(id);
        let (test, left, right) = self.sides(test, left, right);
        if to == left || matches!(right, Side::Register(right) if right == to) {
            // The comparison must precede the write to `to`, which is one of its operands.
            self.compare(test, left, right, 2);
            self.push(number(MOVE, to, 0));
            self.push(Instruction { offset: 1, ..instruction(opcode::JUMP) });
            self.push(number(MOVE, to, 1));
        } else {
            self.push(number(MOVE, to, 1));
            self.compare(test, left, right, 1);
            self.push(number(MOVE, to, 0));
        }
        self.keep(id, to);
    }

    fn swap(&mut self, id: ValueId, size: Size, of: ValueId) {
        let to = self.target(id);
        self.load(to, of);
        match size {
            1 => self.push(number(code(Binary::And), to, 0xff)),
            _ => self.push(number(TO_BIG, to, i32::from(size) * 8)),
        }
        self.keep(id, to);
    }

    fn store(&mut self, (base, offset): (ValueId, i16), size: Size, value: ValueId) {
        let (base, offset) = self.address(base, offset, SECOND_SCRATCH);
        match self.graph.constant(value).and_then(|value| stored(value, size)) {
            Some(value) => {
                let plain = memory(class::ST, size, base, 0, offset);
                self.push(Instruction { immediate: value, ..plain });
            }
            None => {
                let value = self.register(value, SCRATCH);
                self.push(memory(class::STX, size, base, value, offset));
            }
        }
    }

    fn call(&mut self, id: ValueId, function: Function, arguments: &[ValueId]) {
        let moves = (1..)
            .zip(arguments)
            .map(|(register, one)| (Place::Register(register), self.source(*one)));
        self.moves(moves.collect());
        let call = instruction(opcode::CALL);
        let (source, immediate) = match function {
            Function::Helper(number) => (callee::HELPER, number),
            Function::Linked(index) => {
                let function = self.graph.linked[index].clone();
                let at = self.code.instructions.len();
                self.code.linked_calls.push(LinkedCall { at, function });
                (callee::LOCAL, 0)
            }
        };
        self.push(Instruction { source, immediate, ..call });
        if let Some(place) = self.places.get(&id) {
            self.put(*place, SCRATCH);
        }
    }

    fn binary(&mut self, id: ValueId, operator: Binary, left: ValueId, right: ValueId) {
        let to = self.target(id);
        if let Some(by) = self.graph.constant(right) {
            self.load(to, left);
            self.by(operator, to, by);
            return self.keep(id, to);
        }
        if self.is_in(right, to) {
            if operator.commutes() {
                let left = self.register(left, SECOND_SCRATCH);
                self.push(two(code(operator), to, left));
                return self.keep(id, to);
            }
            // Loading the left operand into `to` would overwrite the right one.
            self.load(SCRATCH, left);
            let right = self.register(right, SECOND_SCRATCH);
            self.push(two(code(operator), SCRATCH, right));
            return self.keep(id, SCRATCH);
        }
        self.load(to, left);
        let right = self.register(right, SECOND_SCRATCH);
        self.push(two(code(operator), to, right));
        self.keep(id, to);
    }

    /// Emits an operation with a constant operand.
    fn by(&mut self, operator: Binary, to: u8, by: u64) {
        match (operator, small(by)) {
            (Binary::And, _) if by == u64::from(u32::MAX) => self.push(two(MOVE_32, to, to)),
            (_, Some(by)) => self.push(number(code(operator), to, by)),
            // A mask of low-order ones: shift the upper bits out and back.
            (Binary::And, None) if (by & by.wrapping_add(1)) == 0 => {
                let above = by.leading_zeros() as i32;
                self.push(number(code(Binary::ShiftLeft), to, above));
                self.push(number(code(Binary::ShiftRight), to, above));
            }
            (_, None) => {
                self.number(SECOND_SCRATCH, by);
                self.push(two(code(operator), to, SECOND_SCRATCH));
            }
        }
    }

    fn select(&mut self, id: ValueId, condition: ValueId, yes: ValueId, no: ValueId) {
        let to = self.target(id);
        let to = if self.is_in(condition, to) || self.is_in(yes, to) { SCRATCH } else { to };
        self.load(to, no);
        let condition = self.register(condition, SECOND_SCRATCH);
        let skip = self.code.instructions.len();
        self.push(number(test(Compare::Equal), condition, 0));
        self.load(to, yes);
        let skipped = self.code.instructions.len() - skip - 1;
        self.code.instructions[skip].offset = skipped as i16;
        self.keep(id, to);
    }
}
