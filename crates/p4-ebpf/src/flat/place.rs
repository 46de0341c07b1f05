//! Code sinking for packet fields: each field is loaded in the block that uses it. After a barrier
//! block the packet is modified, so a field that is used after a barrier is loaded in the barrier
//! block.

use std::collections::HashMap;

use p4_syntax::source::Span;

use super::dominators::Dominators;
use super::shape::ones;
use super::{Binary, BlockId, Graph, Op, Size, ValueId};

/// State of the pass that places loads.
struct Places {
    dominators: Dominators,
    /// Operations that are already available in a block.
    known: HashMap<(BlockId, Op), ValueId>,
    /// Address of the packet. A single value, so that equal loads are recognized as such.
    packet: Option<ValueId>,
    /// Loads appended to the end of blocks, for uses in later blocks and in phis.
    tails: HashMap<BlockId, Vec<ValueId>>,
}

impl Graph {
    /// Replaces packet fields by loads.
    pub(super) fn place_fields(&mut self) {
        self.remove_dead_code();
        let order = self.order();
        let dominators = self.dominators(&order);
        let mut places =
            Places { dominators, known: HashMap::new(), packet: None, tails: HashMap::new() };
        for block in &order {
            let at = self.place_of(*block, &places);
            let body = std::mem::take(&mut self.blocks[block.index()].body);
            let mut placed = Vec::with_capacity(body.len());
            for id in body {
                self.load_operands(id, at, &mut places, (at == *block).then_some(&mut placed));
                placed.push(id);
            }
            self.blocks[block.index()].body = placed;
            let mut end = self.blocks[block.index()].end;
            end.visit_operands_mut(|one| self.load(one, at, &mut places, None));
            self.blocks[block.index()].end = end;
        }
        for block in &order {
            let predecessors = self.blocks[block.index()].predecessors.iter();
            let places_of: Vec<_> =
                predecessors.map(|from| self.place_of(*from, &places)).collect();
            for phi in self.blocks[block.index()].phis.clone() {
                let Op::Phi(mut all) = self.op(phi).clone() else { continue };
                for (one, at) in all.iter_mut().zip(&places_of) {
                    self.load(one, *at, &mut places, None);
                }
                self.nodes[phi.index()].op = Op::Phi(all);
            }
        }
        for (block, tail) in places.tails {
            self.blocks[block.index()].body.extend(tail);
        }
    }

    /// Returns the block in which fields that `block` uses are loaded: a dominating barrier, or
    /// `block` itself.
    fn place_of(&self, block: BlockId, places: &Places) -> BlockId {
        let is_before = |one: &&BlockId| places.dominators.dominates(**one, block);
        self.barriers.iter().find(is_before).copied().unwrap_or(block)
    }

    fn load_operands(
        &mut self,
        id: ValueId,
        at: BlockId,
        places: &mut Places,
        mut body: Option<&mut Vec<ValueId>>,
    ) {
        let mut op = self.op(id).clone();
        op.visit_operands_mut(|one| self.load(one, at, places, body.as_deref_mut()));
        self.nodes[id.index()].op = op;
    }

    /// If the value is a field, replaces it by a load, appended to `body` or to the end of block
    /// `at`.
    fn load(
        &mut self,
        one: &mut ValueId,
        at: BlockId,
        places: &mut Places,
        body: Option<&mut Vec<ValueId>>,
    ) {
        let Op::Field { at: first, bit, width, bytes } = *self.op(*one) else { return };
        let span = self.nodes[one.index()].span;
        let mut loader = Loader { graph: self, block: at, span, places, body };
        *one = loader.field(first, bit, width, bytes);
    }
}

struct Loader<'l> {
    graph: &'l mut Graph,
    block: BlockId,
    span: Span,
    places: &'l mut Places,
    body: Option<&'l mut Vec<ValueId>>,
}

impl Loader<'_> {
    fn op(&mut self, op: Op) -> ValueId {
        if op.floats() {
            return self.graph.add(op, self.span);
        }
        // A load at the end of the block comes too late for uses within the body.
        let is_tail = self.body.is_none();
        if let Some(known) = self.places.known.get(&(self.block, op.clone()))
            && (is_tail
                || !self.places.tails.get(&self.block).is_some_and(|all| all.contains(known)))
        {
            return *known;
        }
        let id = self.graph.add(op.clone(), self.span);
        match &mut self.body {
            Some(body) => body.push(id),
            None => self.places.tails.entry(self.block).or_default().push(id),
        }
        self.places.known.insert((self.block, op), id);
        id
    }

    fn by(&mut self, operator: Binary, left: ValueId, right: u64) -> ValueId {
        let right = self.op(Op::Constant(right));
        self.op(Op::Binary(operator, left, right))
    }

    fn field(&mut self, at: ValueId, bit: u32, width: u32, bytes: u32) -> ValueId {
        // Fold the constant part of the offset into the load.
        let (base, offset) = match *self.graph.op(at) {
            Op::Constant(number) => (None, number),
            Op::Binary(Binary::Add, base, more) => match self.graph.constant(more) {
                Some(more) => (Some(base), more),
                None => (Some(at), 0),
            },
            _ => (Some(at), 0),
        };
        let near = offset < 0x4000 && bytes < 0x3000;
        let packet = match self.places.packet {
            Some(packet) => packet,
            None => self.op(Op::Packet),
        };
        self.places.packet = Some(packet);
        let (base, offset) = match (base, near) {
            (None, true) => (packet, offset as u32),
            (Some(base), true) => (self.op(Op::Binary(Binary::Add, packet, base)), offset as u32),
            _ => (self.op(Op::Binary(Binary::Add, packet, at)), 0),
        };
        let (first, last) = (bit / 8, (bit + width - 1) / 8);
        let span = last - first + 1;
        let below = (last + 1) * 8 - (bit + width);
        let whole = if span > 8 {
            // A number of up to 64 bits that is not byte-aligned may span nine bytes.
            let upper = self.bytes(base, offset, first, 8, bytes);
            let lower = self.bytes(base, offset, last, 1, bytes);
            let upper = self.by(Binary::ShiftLeft, upper.0, u64::from(8 - below));
            let lower = self.by(Binary::ShiftRight, lower.0, u64::from(below));
            self.op(Op::Binary(Binary::Or, upper, lower))
        } else {
            let (value, behind) = self.bytes(base, offset, first, span, bytes);
            self.by(Binary::ShiftRight, value, u64::from(behind * 8 + below))
        };
        self.by(Binary::And, whole, ones(width))
    }

    /// Loads `count` bytes from `first` on as one number, which may contain more bytes above them.
    /// Also returns the number of bytes that follow them in that number.
    fn bytes(
        &mut self,
        base: ValueId,
        offset: u32,
        first: u32,
        count: u32,
        there: u32,
    ) -> (ValueId, u32) {
        let size = count.next_power_of_two();
        if size == count || size <= there {
            // A single power-of-two word that contains the bytes and stays within those known to
            // exist.
            let start = if size == count { first } else { first.min(there - size) };
            return (self.word(base, offset + start, size as Size), start + size - first - count);
        }
        let upper = count.next_power_of_two() / 2;
        let (high, _) = self.bytes(base, offset, first, upper, there);
        let (low, behind) = self.bytes(base, offset, first + upper, count - upper, there);
        let low_bits = (count - upper) * 8;
        let low = self.by(Binary::ShiftRight, low, u64::from(behind * 8));
        let low = self.by(Binary::And, low, (1 << low_bits) - 1);
        let high = self.by(Binary::ShiftLeft, high, u64::from(low_bits));
        (self.op(Op::Binary(Binary::Or, high, low)), 0)
    }

    fn word(&mut self, base: ValueId, offset: u32, size: Size) -> ValueId {
        let op = Op::Load { base, offset: offset as i16, size, constant: true };
        let loaded = self.op(op);
        self.op(Op::Swap(size, loaded))
    }
}
