//! Jump threading: if the outcome of a branch is known on an incoming edge, that edge is redirected
//! to the branch's target. A block that only branches on a phi is then bypassed, so a packet that
//! was dropped earlier is not tested again for being dropped.

use std::collections::{BTreeSet, HashSet};

use super::repair::{Definitions, Repair};
use super::{BlockId, Graph, Op, Terminator, ValueId};

/// Upper limit on the phis of a block that is considered.
const MAX_PHIS: usize = 256;
/// Upper limit on the incoming edges of a block that is considered: they are compared pairwise.
pub(super) const MAX_EDGES: usize = 256;
/// Upper limit on the changes to a graph; lower for large ones, because each change rescans the
/// graph.
const MAX_CHANGES: usize = 8192;
const MIN_CHANGES: usize = 512;
/// Upper limit on the values scanned over all changes.
const MAX_LOOKS: usize = 32 << 20;

/// A block that gets its terminator later, and the values that are live at its end.
pub(super) type Outside = (BlockId, Vec<ValueId>);

fn values_of(outside: &mut [Outside]) -> impl Iterator<Item = &mut ValueId> {
    outside.iter_mut().flat_map(|(_, values)| values)
}

fn is_last(outside: &[Outside], block: BlockId) -> bool {
    outside.iter().any(|(last, _)| *last == block)
}

/// Use of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// Instruction or terminator of a block.
    In(BlockId),
    /// Phi of the first block: the operand for the edge from the second.
    Phi(BlockId, BlockId),
    /// Operation that is not placed in a block.
    Floating,
    /// Code that is added later, after the end of an [`Outside`] block.
    Outside,
}

/// Use-def information: the uses of each value. The uses of one value are contiguous in `users`.
struct Uses {
    /// Index of the first use of each value, followed by the total number of uses.
    starts: Vec<u32>,
    users: Vec<Use>,
}

impl Uses {
    fn new(graph: &Graph, outside: &[Outside]) -> Self {
        let mut all: Vec<(ValueId, Use)> = Vec::with_capacity(graph.nodes.len());
        for at in graph.order() {
            let block = &graph.blocks[at.index()];
            for phi in &block.phis {
                if let Op::Phi(values) = graph.op(*phi) {
                    let each = values.iter().zip(&block.predecessors);
                    all.extend(each.map(|(one, from)| (*one, Use::Phi(at, *from))));
                }
            }
            for id in &block.body {
                graph.op(*id).visit_operands(|one| all.push((one, Use::In(at))));
            }
            let mut end = block.end;
            end.visit_operands_mut(|one| all.push((*one, Use::In(at))));
        }
        for node in &graph.nodes {
            if let Op::Field { at, .. } = node.op {
                all.push((at, Use::Floating));
            }
        }
        let outside = outside.iter().flat_map(|(_, values)| values);
        all.extend(outside.map(|value| (*value, Use::Outside)));

        // Counting sort: a program has very many values.
        let mut starts = vec![0; graph.nodes.len() + 1];
        for (value, _) in &all {
            starts[value.index() + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut users = vec![Use::Outside; all.len()];
        for (value, by) in all {
            let place = &mut next[value.index()];
            users[*place as usize] = by;
            *place += 1;
        }
        Self { starts, users }
    }

    fn by(&self, value: ValueId) -> &[Use] {
        match self.starts.get(value.index()..value.index() + 2) {
            Some(&[from, to]) => &self.users[from as usize..to as usize],
            _ => &[],
        }
    }
}

impl Graph {
    /// Threads jumps until nothing changes: all branches, or only those with a target in `to`.
    /// `outside` lists blocks that get their terminators later, and the values that are live at
    /// their ends.
    pub(super) fn thread_jumps(&mut self, to: Option<&[BlockId]>, outside: &mut [Outside]) {
        let most = MAX_LOOKS / self.nodes.len().max(1);
        let mut left = most.clamp(MIN_CHANGES, MAX_CHANGES);
        loop {
            let replacements = self.simplify();
            values_of(outside).for_each(|value| *value = replacements.of(*value));
            self.merge_successors(outside);
            let before = left;
            let mut uses = Uses::new(self, outside);
            for block in self.order() {
                let is_kept = is_last(outside, block) || self.barriers.contains(&block);
                if left == 0 || is_kept {
                    continue;
                }
                let mut targets = self.blocks[block.index()].end.targets();
                let is_candidate = to.is_none_or(|to| targets.any(|one| to.contains(&one)));
                if self.bypass(block, &uses)
                    || is_candidate && self.thread_edges(block, &uses, outside)
                {
                    left -= 1;
                    uses = Uses::new(self, outside);
                }
            }
            if left == before || left == 0 {
                let replacements = self.simplify();
                values_of(outside).for_each(|value| *value = replacements.of(*value));
                return;
            }
        }
    }

    /// Returns true if the block has no side effects and computes no value that is used.
    fn does_nothing(&self, block: BlockId, uses: &Uses) -> bool {
        self.blocks[block.index()]
            .body
            .iter()
            .all(|id| !self.op(*id).has_side_effects() && uses.by(*id).is_empty())
    }

    /// Merges a block that ends in a jump with its successor if that has no other predecessor.
    fn merge_successors(&mut self, outside: &[Outside]) {
        for block in self.order() {
            while let Terminator::Jump(to) = self.blocks[block.index()].end {
                let there = &self.blocks[to.index()];
                let is_kept = is_last(outside, to) || self.barriers.contains(&block);
                // A block without a terminator is still to be written and stays separate.
                let is_kept = is_kept || there.end == Terminator::Nothing;
                if there.predecessors.len() != 1 || !there.phis.is_empty() || to == block || is_kept
                {
                    break;
                }
                let there = std::mem::take(&mut self.blocks[to.index()]);
                for behind in there.end.targets() {
                    for from in &mut self.blocks[behind.index()].predecessors {
                        if *from == to {
                            *from = block;
                        }
                    }
                }
                let here = &mut self.blocks[block.index()];
                here.body.extend(there.body);
                here.end = there.end;
                if let Some(barrier) = self.barriers.iter_mut().find(|one| **one == to) {
                    *barrier = block;
                }
            }
        }
    }

    /// Bypasses an empty block that only jumps: its predecessors jump to its target directly.
    fn bypass(&mut self, block: BlockId, uses: &Uses) -> bool {
        let here = &self.blocks[block.index()];
        let Terminator::Jump(to) = here.end else { return false };
        let edge = self.blocks[to.index()].predecessors.iter().position(|one| *one == block);
        let Some(edge) = edge.filter(|_| {
            (2..=MAX_EDGES).contains(&here.predecessors.len())
                && to != block
                && here.phis.len() <= MAX_PHIS
                && self.does_nothing(block, uses)
        }) else {
            return false;
        };
        // The phis of this block may only be operands of the phis of the target.
        let only_there = |phi: &ValueId| uses.by(*phi).iter().all(|by| *by == Use::Phi(to, block));
        if !here.phis.iter().all(only_there) {
            return false;
        }
        // Two edges between the same pair of blocks could not be distinguished.
        let there = &self.blocks[to.index()].predecessors;
        let once =
            |from: &BlockId| here.predecessors.iter().filter(|one| *one == from).count() == 1;
        if !here.predecessors.iter().all(|from| once(from) && !there.contains(from)) {
            return false;
        }
        let phis: HashSet<_> = here.phis.iter().copied().collect();
        let predecessors = here.predecessors.clone();
        for phi in self.blocks[to.index()].phis.clone() {
            let Op::Phi(mut all) = self.op(phi).clone() else { continue };
            let value = all.remove(edge);
            for at in 0..predecessors.len() {
                all.push(match self.op(value) {
                    Op::Phi(inner) if phis.contains(&value) => inner[at],
                    _ => value,
                });
            }
            self.nodes[phi.index()].op = Op::Phi(all);
        }
        self.blocks[to.index()].predecessors.remove(edge);
        for from in &predecessors {
            self.retarget(*from, block, to);
            self.blocks[to.index()].predecessors.push(*from);
        }
        let here = &mut self.blocks[block.index()];
        here.predecessors.clear();
        here.phis.clear();
        here.body.clear();
        here.end = Terminator::Nothing;
        true
    }

    /// Retargets the edge from `from` to `old` so that it leads to `new`.
    pub(super) fn retarget(&mut self, from: BlockId, old: BlockId, new: BlockId) {
        match &mut self.blocks[from.index()].end {
            Terminator::Jump(to) => *to = new,
            Terminator::Branch { then, otherwise, .. } => {
                let target = if *then == old { then } else { otherwise };
                if *target == old {
                    *target = new;
                }
            }
            _ => {}
        }
    }

    /// Threads the incoming edges of a block on which the outcome of its branch is known.
    fn thread_edges(&mut self, block: BlockId, uses: &Uses, outside: &mut [Outside]) -> bool {
        let here = &self.blocks[block.index()];
        let Terminator::Branch { condition, operands: (left, right), then, otherwise } = here.end
        else {
            return false;
        };
        let (Op::Phi(all), Some(right)) = (self.op(left), self.constant(right)) else {
            return false;
        };
        if !here.phis.contains(&left)
            || !(2..=MAX_EDGES).contains(&here.predecessors.len())
            || here.phis.len() > MAX_PHIS
            || then == otherwise
            || then == block
            || otherwise == block
            || !self.does_nothing(block, uses)
        {
            return false;
        }
        let target = |one: &ValueId| {
            let known = self.constant(*one)?;
            Some(if condition.of(known, right) { then } else { otherwise })
        };
        // A predecessor with two edges to this block is skipped: its edges cannot be distinguished.
        let once = |at: &usize| {
            let from = here.predecessors[*at];
            here.predecessors.iter().filter(|one| **one == from).count() == 1
        };
        let edges: Vec<(usize, BlockId)> =
            (0..all.len()).filter(once).filter_map(|at| Some((at, target(&all[at])?))).collect();
        // An edge must not duplicate an existing edge between the same two blocks.
        let is_new = |(at, to): &(usize, BlockId)| {
            !self.blocks[to.index()].predecessors.contains(&here.predecessors[*at])
        };
        let edges: Vec<_> = edges.into_iter().filter(is_new).collect();
        if edges.is_empty() {
            return false;
        }
        let definitions = self.redirect(block, (then, otherwise), &edges);
        self.repair(block, (then, otherwise), definitions, uses, outside);
        true
    }

    fn redirect(
        &mut self,
        block: BlockId,
        (then, otherwise): (BlockId, BlockId),
        threaded: &[(usize, BlockId)],
    ) -> Definitions {
        let phis = self.blocks[block.index()].phis.clone();
        let predecessors = self.blocks[block.index()].predecessors.clone();
        self.blocks[block.index()].body.clear();
        let operand = |graph: &Self, phi: ValueId, at: usize| match graph.op(phi) {
            Op::Phi(all) => all[at],
            _ => phi,
        };
        // After the branch, a value is either the phi of this block or its operand on a threaded
        // edge.
        let mut definitions = Definitions::new();
        for to in [then, otherwise] {
            let edges: Vec<usize> =
                threaded.iter().filter(|(_, one)| *one == to).map(|(at, _)| *at).collect();
            if edges.is_empty() {
                continue;
            }
            let before = self.blocks[to.index()].predecessors.clone();
            for phi in self.blocks[to.index()].phis.clone() {
                let Op::Phi(mut all) = self.op(phi).clone() else { continue };
                let Some(from) = before.iter().position(|one| *one == block) else { continue };
                for edge in &edges {
                    let value = all[from];
                    all.push(if phis.contains(&value) {
                        operand(self, value, *edge)
                    } else {
                        value
                    });
                }
                self.nodes[phi.index()].op = Op::Phi(all);
            }
            for phi in &phis {
                let mut all = vec![*phi; before.len()];
                all.extend(edges.iter().map(|edge| operand(self, *phi, *edge)));
                let span = self.nodes[phi.index()].span;
                let new = self.add(Op::Phi(all), span);
                self.blocks[to.index()].phis.push(new);
                self.homes.insert(new, to);
                definitions.entry(*phi).or_default().insert(to, new);
            }
            for edge in &edges {
                self.retarget(predecessors[*edge], block, to);
                self.blocks[to.index()].predecessors.push(predecessors[*edge]);
            }
        }
        let stays = |at: &usize| threaded.iter().all(|(gone, _)| gone != at);
        for phi in &phis {
            if let Op::Phi(all) = self.op(*phi).clone() {
                let left = (0..all.len()).filter(stays).map(|at| all[at]).collect();
                self.nodes[phi.index()].op = Op::Phi(left);
            }
        }
        let left = (0..predecessors.len()).filter(stays).map(|at| predecessors[at]).collect();
        self.blocks[block.index()].predecessors = left;
        definitions
    }

    /// Restores SSA form: each use of a phi of the block is replaced by the definition that reaches
    /// it.
    fn repair(
        &mut self,
        block: BlockId,
        (then, otherwise): (BlockId, BlockId),
        definitions: Definitions,
        uses: &Uses,
        outside: &mut [Outside],
    ) {
        let mut users: BTreeSet<BlockId> = [block, then, otherwise].into();
        let mut floats = false;
        for phi in definitions.keys() {
            for by in uses.by(*phi) {
                match by {
                    Use::In(at) | Use::Phi(at, _) => {
                        users.insert(*at);
                    }
                    Use::Floating => floats = true,
                    Use::Outside => {}
                }
            }
        }
        if floats {
            // An unplaced operation may be used in any block.
            users.extend(self.order());
        }
        let mut repair = Repair { graph: self, block, definitions };
        for at in users {
            let here = repair.graph.blocks[at.index()].clone();
            for id in &here.phis {
                let Op::Phi(mut operands) = repair.graph.op(*id).clone() else { continue };
                for (one, from) in operands.iter_mut().zip(&here.predecessors) {
                    *one = repair.used(*one, *from);
                }
                repair.graph.nodes[id.index()].op = Op::Phi(operands);
            }
            if at == block {
                continue;
            }
            for id in &here.body {
                let mut op = repair.graph.op(*id).clone();
                op.visit_operands_mut(|one| *one = repair.used(*one, at));
                repair.graph.nodes[id.index()].op = op;
            }
            let mut end = here.end;
            end.visit_operands_mut(|one| *one = repair.used(*one, at));
            repair.graph.blocks[at.index()].end = end;
        }
        for (last, values) in outside {
            for value in values {
                *value = repair.used(*value, *last);
            }
        }
    }
}
