//! Builds a graph statement by statement. Variables consist of slots, which are written and read
//! block by block; a read at a join inserts a phi on demand (Braun et al., Simple and Efficient
//! Construction of Static Single Assignment Form, 2013).

use std::collections::HashMap;

use p4_syntax::source::Span;

use super::fold::Folded;
use super::replacements::Replacements;
use super::{Binary, Block, BlockId, Compare, Graph, Op, Terminator, ValueId};

/// Part of a variable that holds one 64-bit number.
pub(super) type Slot = u32;

/// Distance, in blocks, at which the value of a slot is cached along a chain of blocks.
const STEP: usize = 16;

/// Upper limit on the phi operands of a graph. The largest program of the tests has 19,476.
const MAX_PHI_OPERANDS: usize = 1 << 18;

/// Graph under construction.
pub(super) struct Builder {
    pub(super) graph: Graph,
    /// Source location of the statement that is lowered.
    pub(super) span: Span,
    /// Block to which operations are appended.
    pub(super) block: BlockId,
    /// Value of each slot at the end of a block.
    written: HashMap<(BlockId, Slot), ValueId>,
    /// True for each block that gets no further predecessors.
    sealed: Vec<bool>,
    /// Phis of unsealed blocks, which get their operands when the block is sealed.
    waiting: HashMap<BlockId, Vec<(Slot, ValueId)>>,
    /// Replacements of values that were removed.
    replacements: Replacements,
    /// Number of calls of [`Builder::op`], also of those that add no node.
    operations: usize,
    /// Number of phi operands.
    phi_operands: usize,
    /// Set once [`MAX_PHI_OPERANDS`] has been exceeded.
    is_too_wide: bool,
    /// Existing pure operations. Unplaced operations are shared by all blocks.
    known: HashMap<(Option<BlockId>, Op), ValueId>,
}

/// Number of written slots that take as much memory as a node.
const SLOTS_PER_NODE: usize = 8;

impl Builder {
    pub(super) fn new() -> Self {
        let mut builder = Self {
            graph: Graph::default(),
            span: Span::default(),
            block: BlockId(0),
            written: HashMap::new(),
            sealed: Vec::new(),
            waiting: HashMap::new(),
            replacements: Replacements::default(),
            operations: 0,
            phi_operands: 0,
            is_too_wide: false,
            known: HashMap::new(),
        };
        builder.block = builder.new_block();
        builder.seal(builder.block);
        builder
    }

    /// Size of the graph in nodes. Inlined calls may add only blocks or written slots, so these are
    /// counted, too.
    pub(super) fn size(&self) -> usize {
        let slots = self.written.len() / SLOTS_PER_NODE;
        self.graph.nodes.len().max(self.graph.blocks.len()).max(slots)
    }

    /// Number of operations that were added or folded.
    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    // ---- blocks ----

    pub(super) fn new_block(&mut self) -> BlockId {
        self.graph.blocks.push(Block::default());
        self.sealed.push(false);
        BlockId(self.graph.blocks.len() as u32 - 1)
    }

    /// Continues in a block that gets no further predecessors.
    pub(super) fn continue_in(&mut self, block: BlockId) {
        self.seal(block);
        self.block = block;
    }

    /// Continues in a new, unreachable block.
    pub(super) fn unreachable(&mut self) {
        let nowhere = self.new_block();
        self.continue_in(nowhere);
    }

    /// Marks a block as having all its predecessors, and completes its phis.
    pub(super) fn seal(&mut self, block: BlockId) {
        if std::mem::replace(&mut self.sealed[block.index()], true) {
            return;
        }
        for (slot, phi) in self.waiting.remove(&block).unwrap_or_default() {
            let phis = self.fill(vec![(block, slot, phi)]);
            self.remove_trivial_phis(&phis);
        }
    }

    pub(super) fn jump(&mut self, to: BlockId) {
        self.end(Terminator::Jump(to));
    }

    /// Branches to `then` if the condition is not 0, else to `otherwise`.
    pub(super) fn branch(&mut self, condition: ValueId, then: BlockId, otherwise: BlockId) {
        let condition = self.resolved(condition);
        // `and` and `or` of two comparisons become two branches.
        if let Op::Binary(operator @ (Binary::And | Binary::Or), one, other) =
            *self.graph.op(condition)
            && self.is_compare(one)
            && self.is_compare(other)
        {
            let next = self.new_block();
            match operator {
                Binary::And => self.branch(one, next, otherwise),
                _ => self.branch(one, then, next),
            }
            self.continue_in(next);
            return self.branch(other, then, otherwise);
        }
        match self.graph.constant(condition) {
            Some(0) => self.jump(otherwise),
            Some(_) => self.jump(then),
            None => {
                let (condition, operands) = match self.graph.op(condition) {
                    Op::Compare(test, one, other) => (*test, (*one, *other)),
                    _ => (Compare::NotEqual, (condition, self.constant(0))),
                };
                self.end(Terminator::Branch { condition, operands, then, otherwise });
            }
        }
    }

    fn is_compare(&self, of: ValueId) -> bool {
        matches!(self.graph.op(self.resolved(of)), Op::Compare(..))
    }

    /// Ends the block, unless it already has a terminator or is unreachable.
    pub(super) fn end(&mut self, end: Terminator) {
        let is_first = self.block == BlockId(0);
        let block = &mut self.graph.blocks[self.block.index()];
        let is_reached = is_first || !block.predecessors.is_empty();
        if block.end != Terminator::Nothing || !is_reached {
            return;
        }
        block.end = end;
        for to in end.targets() {
            self.graph.blocks[to.index()].predecessors.push(self.block);
        }
    }

    // ---- values ----

    pub(super) fn constant(&mut self, number: u64) -> ValueId {
        self.op(Op::Constant(number))
    }

    pub(super) fn binary(&mut self, operator: Binary, left: ValueId, right: ValueId) -> ValueId {
        self.op(Op::Binary(operator, left, right))
    }

    /// Adds a binary operation with a constant right operand.
    pub(super) fn by(&mut self, operator: Binary, left: ValueId, right: u64) -> ValueId {
        let right = self.constant(right);
        self.binary(operator, left, right)
    }

    pub(super) fn compare(&mut self, compare: Compare, left: ValueId, right: ValueId) -> ValueId {
        self.op(Op::Compare(compare, left, right))
    }

    pub(super) fn select(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
        self.op(Op::Select(condition, yes, no))
    }

    /// Returns 1 if the value is 0, otherwise 0.
    pub(super) fn not(&mut self, of: ValueId) -> ValueId {
        let zero = self.constant(0);
        self.compare(Compare::Equal, of, zero)
    }

    /// Appends an operation to the block, or returns an existing value that is equal to it.
    pub(super) fn op(&mut self, mut op: Op) -> ValueId {
        self.operations += 1;
        op.visit_operands_mut(|one| *one = self.resolved(*one));
        if let Some(phi) = self.graph.fold_phis(&op) {
            return phi;
        }
        match self.graph.fold(&op) {
            Folded::Value(value) => return value,
            Folded::Constant(number) => return self.constant(number),
            Folded::Op(op) => return self.op(op),
            Folded::By(operator, left, right) => return self.by(operator, left, right),
            Folded::Same => {}
        }
        let at = (!op.floats()).then_some(self.block);
        let is_pure = op.is_pure();
        if is_pure && let Some(known) = self.known.get(&(at, op.clone())) {
            return self.resolved(*known);
        }
        let id = self.graph.add(op.clone(), self.span);
        if at.is_some() {
            self.graph.blocks[self.block.index()].body.push(id);
        }
        if is_pure {
            self.known.insert((at, op), id);
        }
        id
    }

    // ---- slots ----

    pub(super) fn write(&mut self, slot: Slot, value: ValueId) {
        self.written.insert((self.block, slot), value);
    }

    /// Returns the value of a slot here, or 0 if it was never written.
    pub(super) fn read(&mut self, slot: Slot) -> ValueId {
        let mut open = Vec::new();
        let value = self.look(self.block, slot, &mut open);
        let phis = self.fill(open);
        self.remove_trivial_phis(&phis);
        self.resolved(value)
    }

    /// Returns the value of a slot at the end of a block. At a join, inserts a phi without
    /// operands.
    fn look(
        &mut self,
        from: BlockId,
        slot: Slot,
        open: &mut Vec<(BlockId, Slot, ValueId)>,
    ) -> ValueId {
        let mut block = from;
        let value = loop {
            if let Some(value) = self.written.get(&(block, slot)) {
                break self.resolved(*value);
            }
            if !self.sealed[block.index()] {
                let phi = self.phi(block);
                self.waiting.entry(block).or_default().push((slot, phi));
                break phi;
            }
            match self.graph.blocks[block.index()].predecessors[..] {
                [] => break self.constant(0),
                [one] => block = one,
                // This is not correct, but the graph is not used any more: see `is_too_wide`.
                _ if self.is_too_wide => break self.constant(0),
                _ => {
                    let phi = self.phi(block);
                    open.push((block, slot, phi));
                    break phi;
                }
            }
        };
        self.written.insert((block, slot), value);
        // Cache the value in every [`STEP`]th block of a long chain, so that no chain is walked
        // twice: a `switch` with 10,000 labels has 10,000 chains of up to 10,000 blocks (1.8 s
        // instead of 26 s to compile). Caching it in every block would take more memory than the
        // program.
        let (mut walked, mut steps) = (from, 0);
        while walked != block {
            if steps % STEP == 0 {
                self.written.insert((walked, slot), value);
            }
            steps += 1;
            walked = self.graph.blocks[walked.index()].predecessors[0];
        }
        value
    }

    fn phi(&mut self, block: BlockId) -> ValueId {
        let phi = self.graph.add(Op::Phi(Vec::new()), self.span);
        self.graph.blocks[block.index()].phis.push(phi);
        self.graph.homes.insert(phi, block);
        phi
    }

    /// Simplifies the graph so far and threads jumps: all branches, or those with a target in `to`.
    /// Each of `ends` continues with its listed slots only: all other slots become undefined, and
    /// values read earlier become invalid.
    pub(super) fn settle(&mut self, ends: &[(BlockId, Vec<Slot>)], to: Option<&[BlockId]>) {
        let mut outside = Vec::with_capacity(ends.len());
        for (block, slots) in ends {
            self.block = *block;
            outside.push((*block, slots.iter().map(|slot| self.read(*slot)).collect::<Vec<_>>()));
        }
        let replacements = std::mem::take(&mut self.replacements);
        self.graph.replace(&replacements);
        for value in outside.iter_mut().flat_map(|(_, values)| values) {
            *value = replacements.of(*value);
        }
        self.graph.thread_jumps(to, &mut outside);
        self.written.clear();
        self.known.clear();
        for ((block, slots), (_, values)) in ends.iter().zip(outside) {
            self.block = *block;
            for (slot, value) in slots.iter().zip(values) {
                self.write(*slot, value);
            }
        }
    }

    /// Splits the block by the values of its slots on its incoming edges; see [`Graph::split`].
    pub(super) fn split(
        &mut self,
        block: BlockId,
        slots: &[Slot],
        selectors: &[Slot],
    ) -> Vec<BlockId> {
        self.block = block;
        let values: Vec<_> = slots.iter().map(|slot| self.read(*slot)).collect();
        let place = |slot: &Slot| slots.iter().position(|one| one == slot);
        let selectors: Vec<_> = selectors.iter().filter_map(place).collect();
        let copies = self.graph.split(block, &values, &selectors);
        self.sealed.resize(self.graph.blocks.len(), true);
        let mut blocks = Vec::with_capacity(copies.len());
        for (block, values) in copies {
            self.block = block;
            for (slot, value) in slots.iter().zip(values) {
                self.write(*slot, value);
            }
            blocks.push(block);
        }
        blocks
    }

    /// Adds the operands of open phis. Returns all phis that were completed.
    fn fill(&mut self, mut open: Vec<(BlockId, Slot, ValueId)>) -> Vec<ValueId> {
        let mut phis = Vec::new();
        while let Some((block, slot, phi)) = open.pop() {
            let predecessors = self.graph.blocks[block.index()].predecessors.clone();
            self.phi_operands += predecessors.len();
            self.is_too_wide |= self.phi_operands > MAX_PHI_OPERANDS;
            let mut all = Vec::with_capacity(predecessors.len());
            for from in predecessors {
                all.push(self.look(from, slot, &mut open));
            }
            self.graph.nodes[phi.index()].op = Op::Phi(all);
            phis.push(phi);
        }
        phis
    }

    /// Replaces trivial phis, all operands of which are the same value, by that value.
    fn remove_trivial_phis(&mut self, phis: &[ValueId]) {
        for phi in phis.iter().rev() {
            let Op::Phi(all) = self.graph.op(*phi) else { continue };
            let all: Vec<_> = all.iter().map(|one| self.resolved(*one)).collect();
            let mut others = all.iter().filter(|one| *one != phi);
            if let Some(first) = others.next().copied()
                && others.all(|one| *one == first)
            {
                self.replacements.insert(*phi, first);
                self.phi_operands -= all.len();
            }
            self.graph.nodes[phi.index()].op = Op::Phi(all);
        }
    }

    /// Returns true if there are too many phi operands. The graph is then incorrect, and the
    /// program has to be rejected.
    pub(super) fn is_too_wide(&self) -> bool {
        self.is_too_wide
    }

    /// Returns the replacement of a value, or the value itself.
    pub(super) fn resolved(&self, of: ValueId) -> ValueId {
        self.replacements.of(of)
    }

    /// Seals every block.
    pub(super) fn seal_all(&mut self) {
        for block in (0..self.graph.blocks.len() as u32).map(BlockId) {
            self.seal(block);
        }
    }

    /// Returns the graph with all replacements applied.
    pub(super) fn finish(mut self) -> Graph {
        let replacements = std::mem::take(&mut self.replacements);
        self.graph.replace(&replacements);
        self.graph
    }
}
