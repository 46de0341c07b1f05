//! Terminators, jumps and comparisons.

use p4_object::Instruction;
use p4_object::opcode;

use super::super::moves::in_order;
use super::super::opcodes::{exchanged, instruction, number, small, test, two};
use super::{Emit, SCRATCH, SECOND_SCRATCH};
use crate::flat::{BlockId, Compare, Terminator, ValueId};

/// Right operand of a comparison.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Number(i32),
    Register(u8),
}

impl Emit<'_> {
    /// Emits the terminator of a block. `next` is the block that follows it in the layout.
    pub(super) fn end(&mut self, id: BlockId, next: Option<BlockId>) {
        match self.graph.blocks[id.index()].end {
            Terminator::Nothing => debug_assert!(false, "a block without a terminator"),
            Terminator::Jump(to) => {
                let moves = self.phi_moves(id, to);
                self.moves(moves);
                let to = self.behind(to);
                if next != Some(to) {
                    self.jump(to);
                }
            }
            Terminator::Branch { condition, operands, then, otherwise } => {
                let (then, otherwise) = (self.behind(then), self.behind(otherwise));
                if next == Some(then) {
                    let (opposite, turned) = condition.opposite();
                    let operands = if turned { (operands.1, operands.0) } else { operands };
                    self.branch(opposite, operands, otherwise);
                } else {
                    self.branch(condition, operands, then);
                    if next != Some(otherwise) {
                        self.jump(otherwise);
                    }
                }
            }
            Terminator::Return(value) => {
                self.load(SCRATCH, value);
                self.push(instruction(opcode::EXIT));
            }
        }
    }

    fn branch(&mut self, test: Compare, (left, right): (ValueId, ValueId), to: BlockId) {
        let (test, left, right) = self.sides(test, left, right);
        self.jumps.push((self.code.instructions.len(), to));
        self.compare(test, left, right, 0);
    }

    /// Returns the opcode and the operands of a comparison, with the left one in a register.
    pub(super) fn sides(
        &mut self,
        compare: Compare,
        left: ValueId,
        right: ValueId,
    ) -> (u8, u8, Side) {
        let known = |value: ValueId| self.graph.constant(value).and_then(small);
        if let (Some(left), None) = (known(left), known(right)) {
            // Only the right operand can be an immediate.
            return (exchanged(compare), self.register(right, SCRATCH), Side::Number(left));
        }
        let right = match known(right) {
            Some(number) => Side::Number(number),
            None => Side::Register(self.register(right, SECOND_SCRATCH)),
        };
        (test(compare), self.register(left, SCRATCH), right)
    }

    pub(super) fn compare(&mut self, code: u8, left: u8, right: Side, offset: i16) {
        let plain = match right {
            Side::Number(right) => number(code, left, right),
            Side::Register(right) => two(code, left, right),
        };
        self.push(Instruction { offset, ..plain });
    }

    fn jump(&mut self, to: BlockId) {
        self.jumps.push((self.code.instructions.len(), to));
        self.push(instruction(opcode::JUMP));
    }

    /// Links the jumps to their targets.
    pub(super) fn link(&mut self) {
        for (at, to) in &self.jumps {
            let distance = self.starts[to] as i64 - *at as i64 - 1;
            match i16::try_from(distance) {
                Ok(distance) => self.code.instructions[*at].offset = distance,
                Err(_) => self.code.too_far = true,
            }
        }
    }

    /// Skips blocks that do nothing. Returns the first one that does something.
    pub(super) fn behind(&self, mut id: BlockId) -> BlockId {
        let mut left = self.graph.blocks.len();
        loop {
            let block = &self.graph.blocks[id.index()];
            let Terminator::Jump(to) = block.end else { return id };
            // Blocks that do nothing may form an endless loop.
            if left == 0 || !block.body.is_empty() || !in_order(self.phi_moves(id, to)).is_empty() {
                return id;
            }
            (id, left) = (to, left - 1);
        }
    }
}
