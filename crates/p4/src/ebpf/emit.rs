//! Writes instructions (RFC 9669).

use std::collections::HashMap;

use super::liveness::is_made_again;
use super::moves::{Source, in_order};
use super::opcodes::{
    MOVE, MOVE_32, TO_BIG, code, exchanged, instruction, memory, number, small, stored, test, two,
};
use super::registers::Place;
use crate::flat::{Binary, BlockId, Compare, End, Graph, Op, ValueId};
use crate::object::opcode::{self, class};
use crate::object::{FRAME, Instruction, callee, wide};
use crate::source::Span;

/// Holds what is on its way.
const WAY: u8 = 0;
/// Holds what else is on its way.
const OTHER: u8 = 5;

/// Code, and where in the source its instructions come from.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    pub spans: Vec<Span>,
    /// A jump that is farther than an instruction can say.
    pub too_far: bool,
}

/// What is written.
pub(super) struct Emit<'g> {
    graph: &'g Graph,
    places: &'g HashMap<ValueId, Place>,
    /// Words of the stack above those of values: what calls are told.
    frame: u32,
    code: Code,
    span: Span,
    /// Where blocks begin.
    starts: HashMap<BlockId, usize>,
    /// Jumps to blocks.
    jumps: Vec<(usize, BlockId)>,
}

/// The code of a graph whose blocks stand in this order.
pub(super) fn emit(graph: &Graph, order: &[BlockId], places: &HashMap<ValueId, Place>) -> Code {
    let mut emit = Emit {
        graph,
        places,
        frame: graph.frame,
        code: Code::default(),
        span: Span::default(),
        starts: HashMap::new(),
        jumps: Vec::new(),
    };
    // What does nothing has no code.
    let order: Vec<_> = order.iter().copied().filter(|one| emit.behind(*one) == *one).collect();
    for (at, block) in order.iter().enumerate() {
        emit.starts.insert(*block, emit.code.instructions.len());
        emit.block(*block, order.get(at + 1).copied());
    }
    emit.link();
    emit.code
}

impl Emit<'_> {
    fn block(&mut self, id: BlockId, next: Option<BlockId>) {
        let block = &self.graph.blocks[id.index()];
        let is_argument = |id: &&ValueId| matches!(self.graph.op(**id), Op::Argument(_));
        let arguments: Vec<_> = block.body.iter().take_while(is_argument).copied().collect();
        let moves = arguments.iter().filter_map(|id| match self.graph.op(*id) {
            Op::Argument(at) => {
                let from = Source::Place(Place::Register(at + 1));
                Some((*self.places.get(id)?, from))
            }
            _ => None,
        });
        self.moves(moves.collect());
        for value in &block.body[arguments.len()..] {
            self.span = self.graph.nodes[value.index()].span;
            self.value(*value);
        }
        match block.end {
            End::Nothing => debug_assert!(false, "a way without an end"),
            End::Jump(to) => {
                let moves = self.phi_moves(id, to);
                self.moves(moves);
                let to = self.behind(to);
                if next != Some(to) {
                    self.jump(to);
                }
            }
            End::Branch { test, of, yes, no } => {
                let (yes, no) = (self.behind(yes), self.behind(no));
                if next == Some(yes) {
                    let (opposite, turned) = test.opposite();
                    let of = if turned { (of.1, of.0) } else { of };
                    self.branch(opposite, of, no);
                } else {
                    self.branch(test, of, yes);
                    if next != Some(no) {
                        self.jump(no);
                    }
                }
            }
            End::Return(value) => {
                self.load(WAY, value);
                self.push(instruction(opcode::EXIT));
            }
        }
    }

    fn value(&mut self, id: ValueId) {
        match self.graph.op(id).clone() {
            Op::Binary(operator, left, right) => self.binary(id, operator, left, right),
            Op::Compare(test, left, right) => {
                let to = self.target(id);
                let (test, left, right) = self.sides(test, left, right);
                if to == left || matches!(right, Side::Register(right) if right == to) {
                    // A side would be overwritten before it is compared.
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
            Op::Select(condition, yes, no) => self.select(id, condition, yes, no),
            Op::Swap(size, of) => {
                let to = self.target(id);
                self.load(to, of);
                match size {
                    1 => self.push(number(code(Binary::And), to, 0xff)),
                    _ => self.push(number(TO_BIG, to, i32::from(size) * 8)),
                }
                self.keep(id, to);
            }
            Op::Load { base, offset, size, .. } => {
                let to = self.target(id);
                let (base, offset) = self.address(base, offset, OTHER);
                self.push(memory(class::LDX, size, to, base, offset));
                self.keep(id, to);
            }
            Op::Store { base, offset, size, value } => {
                let (base, offset) = self.address(base, offset, OTHER);
                match self.graph.constant(value).and_then(|value| stored(value, size)) {
                    Some(value) => {
                        let plain = memory(class::ST, size, base, 0, offset);
                        self.push(Instruction { immediate: value, ..plain });
                    }
                    None => {
                        let value = self.register(value, WAY);
                        self.push(memory(class::STX, size, base, value, offset));
                    }
                }
            }
            Op::Call(helper, arguments) => {
                let moves = (1..)
                    .zip(&arguments)
                    .map(|(register, one)| (Place::Register(register), self.source(*one)));
                self.moves(moves.collect());
                let call = instruction(opcode::CALL);
                self.push(Instruction { source: callee::HELPER, immediate: helper, ..call });
                if let Some(place) = self.places.get(&id) {
                    self.put(*place, WAY);
                }
            }
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

    fn binary(&mut self, id: ValueId, operator: Binary, left: ValueId, right: ValueId) {
        let to = self.target(id);
        if let Some(by) = self.graph.constant(right) {
            self.load(to, left);
            self.by(operator, to, by);
            return self.keep(id, to);
        }
        if self.is_in(right, to) {
            if operator.commutes() {
                let left = self.register(left, OTHER);
                self.push(two(code(operator), to, left));
                return self.keep(id, to);
            }
            // The right side would be overwritten.
            self.load(WAY, left);
            let right = self.register(right, OTHER);
            self.push(two(code(operator), WAY, right));
            return self.keep(id, WAY);
        }
        self.load(to, left);
        let right = self.register(right, OTHER);
        self.push(two(code(operator), to, right));
        self.keep(id, to);
    }

    /// An operation with a known number.
    fn by(&mut self, operator: Binary, to: u8, by: u64) {
        match (operator, small(by)) {
            (Binary::And, _) if by == u64::from(u32::MAX) => self.push(two(MOVE_32, to, to)),
            (_, Some(by)) => self.push(number(code(operator), to, by)),
            // A mask of ones below: what is above is moved out and back.
            (Binary::And, None) if (by & by.wrapping_add(1)) == 0 => {
                let above = by.leading_zeros() as i32;
                self.push(number(code(Binary::ShiftLeft), to, above));
                self.push(number(code(Binary::ShiftRight), to, above));
            }
            (_, None) => {
                self.number(OTHER, by);
                self.push(two(code(operator), to, OTHER));
            }
        }
    }

    fn select(&mut self, id: ValueId, condition: ValueId, yes: ValueId, no: ValueId) {
        let to = self.target(id);
        let to = if self.is_in(condition, to) || self.is_in(yes, to) { WAY } else { to };
        self.load(to, no);
        let condition = self.register(condition, OTHER);
        let skip = self.code.instructions.len();
        self.push(number(test(Compare::Equal), condition, 0));
        self.load(to, yes);
        let skipped = self.code.instructions.len() - skip - 1;
        self.code.instructions[skip].offset = skipped as i16;
        self.keep(id, to);
    }

    // ---- jumps ----

    fn branch(&mut self, test: Compare, (left, right): (ValueId, ValueId), to: BlockId) {
        let (test, left, right) = self.sides(test, left, right);
        self.jumps.push((self.code.instructions.len(), to));
        self.compare(test, left, right, 0);
    }

    /// Both sides of a comparison, the left in a register; and its opcode.
    fn sides(&mut self, compare: Compare, left: ValueId, right: ValueId) -> (u8, u8, Side) {
        let known = |value: ValueId| self.graph.constant(value).and_then(small);
        if let (Some(left), None) = (known(left), known(right)) {
            // What is known stands on the right.
            return (exchanged(compare), self.register(right, WAY), Side::Number(left));
        }
        let right = match known(right) {
            Some(number) => Side::Number(number),
            None => Side::Register(self.register(right, OTHER)),
        };
        (test(compare), self.register(left, WAY), right)
    }

    fn compare(&mut self, code: u8, left: u8, right: Side, offset: i16) {
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

    /// Puts the ways into jumps.
    fn link(&mut self) {
        for (at, to) in &self.jumps {
            let way = self.starts[to] as i64 - *at as i64 - 1;
            match i16::try_from(way) {
                Ok(way) => self.code.instructions[*at].offset = way,
                Err(_) => self.code.too_far = true,
            }
        }
    }

    /// The first block from this one on that does something.
    fn behind(&self, mut id: BlockId) -> BlockId {
        let mut left = self.graph.blocks.len();
        loop {
            let block = &self.graph.blocks[id.index()];
            let End::Jump(to) = block.end else { return id };
            // Blocks that do nothing but lead to each other are an endless loop.
            if left == 0 || !block.body.is_empty() || !in_order(self.phi_moves(id, to)).is_empty() {
                return id;
            }
            (id, left) = (to, left - 1);
        }
    }

    /// What meets in a block, and where it is expected.
    fn phi_moves(&self, from: BlockId, to: BlockId) -> Vec<(Place, Source)> {
        let block = &self.graph.blocks[to.index()];
        let Some(way) = block.predecessors.iter().position(|one| *one == from) else {
            return Vec::new();
        };
        let moved = |phi: &ValueId| match (self.graph.op(*phi), self.places.get(phi)) {
            (Op::Phi(all), Some(place)) if *self.graph.op(all[way]) != Op::Undefined => {
                Some((*place, self.source(all[way])))
            }
            _ => None,
        };
        block.phis.iter().filter_map(moved).collect()
    }

    fn moves(&mut self, moves: Vec<(Place, Source)>) {
        for (to, from) in in_order(moves) {
            match (to, from) {
                (Place::Register(to), Source::Place(from)) => self.get(to, from),
                (Place::Register(to), Source::Value(value)) => self.load(to, value),
                (to, Source::Place(Place::Register(from))) => self.put(to, from),
                (to, Source::Place(from)) => {
                    self.get(WAY, from);
                    self.put(to, WAY);
                }
                (Place::Stack(word), Source::Value(value)) => {
                    match self.graph.constant(value).and_then(small) {
                        Some(value) => {
                            let offset = self.offset(word);
                            let plain = memory(class::ST, 8, FRAME, 0, offset);
                            self.push(Instruction { immediate: value, ..plain });
                        }
                        None => {
                            self.load(WAY, value);
                            self.put(to, WAY);
                        }
                    }
                }
            }
        }
    }

    // ---- places ----

    fn source(&self, value: ValueId) -> Source {
        match self.places.get(&value) {
            Some(place) => Source::Place(*place),
            None => Source::Value(value),
        }
    }

    /// Where a value is made: its register, or one that it is moved from.
    fn target(&self, id: ValueId) -> u8 {
        match self.places.get(&id) {
            Some(Place::Register(register)) => *register,
            _ => WAY,
        }
    }

    /// Whether a value is in a register.
    fn is_in(&self, value: ValueId, register: u8) -> bool {
        self.places.get(&value) == Some(&Place::Register(register))
    }

    /// A value that was made in a register goes where it belongs.
    fn keep(&mut self, id: ValueId, register: u8) {
        if let Some(place) = self.places.get(&id) {
            self.put(*place, register);
        }
    }

    /// The register that a value is in; if it is in none, it comes into this one.
    fn register(&mut self, value: ValueId, way: u8) -> u8 {
        match self.places.get(&value) {
            Some(Place::Register(register)) => *register,
            _ => {
                self.load(way, value);
                way
            }
        }
    }

    /// Where memory is: a register and an offset.
    fn address(&mut self, base: ValueId, offset: i16, way: u8) -> (u8, i16) {
        match self.graph.op(base) {
            Op::Frame => (FRAME, offset - (self.frame * 8) as i16),
            _ => (self.register(base, way), offset),
        }
    }

    fn load(&mut self, to: u8, value: ValueId) {
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

    fn get(&mut self, to: u8, from: Place) {
        match from {
            Place::Register(from) if from == to => {}
            Place::Register(from) => self.push(two(MOVE, to, from)),
            Place::Stack(word) => {
                let offset = self.offset(word);
                self.push(memory(class::LDX, 8, to, FRAME, offset));
            }
        }
    }

    fn put(&mut self, to: Place, from: u8) {
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
    fn offset(&self, word: u32) -> i16 {
        -((self.frame + word + 1) as i16 * 8)
    }

    fn number(&mut self, to: u8, value: u64) {
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

    fn push(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
        self.code.spans.push(self.span);
    }
}

/// The right side of a comparison.
#[derive(Clone, Copy)]
enum Side {
    Number(i32),
    Register(u8),
}
