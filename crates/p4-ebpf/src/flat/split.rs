//! Splitting of a join block: if its incoming edges carry different constants, the block is
//! duplicated once for each group of edges that agree.

use super::jump_threading::MAX_EDGES;
use super::{BlockId, Graph, Op, Terminator, ValueId};

/// Upper limit on the copies that a block is split into.
const MAX_COPIES: usize = 12;

impl Graph {
    /// Splits a block that has no terminator and no side effects, by the values on its incoming
    /// edges: the values at the indices `selectors` are compared as constants, and all values by
    /// whether they are fields of the received packet. Returns the copies, each with its own
    /// version of `values`.
    pub(super) fn split(
        &mut self,
        block: BlockId,
        values: &[ValueId],
        selectors: &[usize],
    ) -> Vec<(BlockId, Vec<ValueId>)> {
        let block = self.merged_into_predecessor(block);
        let whole = || vec![(block, values.to_vec())];
        if !self.can_be_split(block, values) {
            return whole();
        }
        let predecessors = self.blocks[block.index()].predecessors.clone();
        let mut groups = self.groups(block, values, selectors, true);
        if groups.len() > MAX_COPIES {
            groups = self.groups(block, values, selectors, false);
        }
        if groups.len() < 2 || groups.len() > MAX_COPIES {
            return whole();
        }
        let mut copies = Vec::with_capacity(groups.len());
        for edges in groups {
            let new = BlockId(self.blocks.len() as u32);
            self.blocks.push(super::Block::default());
            for edge in &edges {
                self.retarget(predecessors[*edge], block, new);
                self.blocks[new.index()].predecessors.push(predecessors[*edge]);
            }
            let values =
                values.iter().map(|one| self.value_in_copy(*one, block, new, &edges)).collect();
            copies.push((new, values));
        }
        self.blocks[block.index()] = super::Block::default();
        copies
    }

    /// Merges the block into its single predecessor, repeatedly, where that has no other successor.
    fn merged_into_predecessor(&mut self, mut block: BlockId) -> BlockId {
        while let [from] = self.blocks[block.index()].predecessors[..]
            && self.blocks[from.index()].end == Terminator::Jump(block)
            && self.blocks[block.index()].phis.is_empty()
        {
            let here = std::mem::take(&mut self.blocks[block.index()]);
            self.blocks[from.index()].body.extend(here.body);
            self.blocks[from.index()].end = Terminator::Nothing;
            block = from;
        }
        block
    }

    fn can_be_split(&self, block: BlockId, values: &[ValueId]) -> bool {
        let here = &self.blocks[block.index()];
        let once =
            |from: &BlockId| here.predecessors.iter().filter(|one| *one == from).count() == 1;
        let is_defined_here = |value: &ValueId| match self.op(*value) {
            Op::Field { at, .. } => here.body.contains(at),
            _ => here.body.contains(value),
        };
        here.end == Terminator::Nothing
            && (2..=MAX_EDGES).contains(&here.predecessors.len())
            && here.predecessors.iter().all(once)
            && !here.body.iter().any(|one| self.op(*one).has_side_effects())
            && !values.iter().any(is_defined_here)
    }

    /// Groups the incoming edges of a block by the constants they carry.
    fn groups(
        &self,
        block: BlockId,
        values: &[ValueId],
        selectors: &[usize],
        fields: bool,
    ) -> Vec<Vec<usize>> {
        let edges = self.blocks[block.index()].predecessors.len();
        let mut groups: Vec<(Vec<_>, Vec<usize>)> = Vec::new();
        for edge in 0..edges {
            let by = |value: ValueId| self.value_on_edge(value, block, edge);
            let numbers = selectors.iter().map(|at| self.constant(by(values[*at])));
            let is_field = |value: &ValueId| matches!(self.op(by(*value)), Op::Field { .. });
            let fields = values.iter().filter(|_| fields).map(|one| is_field(one).then_some(0));
            let known: Vec<_> = numbers.chain(fields).collect();
            match groups.iter_mut().find(|(one, _)| *one == known) {
                Some((_, all)) => all.push(edge),
                None => groups.push((known, vec![edge])),
            }
        }
        groups.into_iter().map(|(_, edges)| edges).collect()
    }

    /// Returns the value on one incoming edge.
    fn value_on_edge(&self, value: ValueId, block: BlockId, edge: usize) -> ValueId {
        match self.op(value) {
            Op::Phi(all) if self.blocks[block.index()].phis.contains(&value) => all[edge],
            _ => value,
        }
    }

    /// Returns the value of `value` in a copy of the block that has only the given incoming edges.
    fn value_in_copy(
        &mut self,
        value: ValueId,
        block: BlockId,
        new: BlockId,
        edges: &[usize],
    ) -> ValueId {
        let span = self.nodes[value.index()].span;
        if let Op::Field { at, bit, width, bytes } = *self.op(value) {
            let base = self.value_in_copy(at, block, new, edges);
            return match base == at {
                true => value,
                false => self.add(Op::Field { at: base, bit, width, bytes }, span),
            };
        }
        let all: Vec<_> =
            edges.iter().map(|edge| self.value_on_edge(value, block, *edge)).collect();
        if all.iter().all(|one| *one == all[0]) {
            return all[0];
        }
        let known = self.blocks[new.index()].phis.iter().copied();
        if let Some(known) = known.into_iter().find(|one| *self.op(*one) == Op::Phi(all.clone())) {
            return known;
        }
        let phi = self.add(Op::Phi(all), span);
        self.blocks[new.index()].phis.push(phi);
        self.homes.insert(phi, new);
        phi
    }
}
