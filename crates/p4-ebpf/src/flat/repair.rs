//! Repair of SSA form after a block was bypassed: finds the definition of a value that reaches a use, and
//! inserts phis where several do.

use std::collections::HashMap;

use super::{BlockId, Graph, Op, ValueId};

/// Definition of each value that is available at the end of a block.
pub(super) type Definitions = HashMap<ValueId, HashMap<BlockId, ValueId>>;

pub(super) struct Repair<'g> {
    pub(super) graph: &'g mut Graph,
    /// Block with the original definitions.
    pub(super) block: BlockId,
    pub(super) definitions: Definitions,
}

impl Repair<'_> {
    /// Returns the definition of `value` that reaches a use in block `at`, after its phis.
    pub(super) fn used(&mut self, value: ValueId, at: BlockId) -> ValueId {
        if let Op::Field { at: first, bit, width, bytes } = *self.graph.op(value) {
            let now = self.used(first, at);
            if now == first {
                return value;
            }
            let span = self.graph.nodes[value.index()].span;
            return self.graph.add(Op::Field { at: now, bit, width, bytes }, span);
        }
        if !self.definitions.contains_key(&value) {
            return value;
        }
        self.reaching_definition(value, at)
    }

    /// A list of open phis instead of recursion: a program of 1 KB has 60,000 joins, and the stack would
    /// hold a frame for each.
    fn reaching_definition(&mut self, value: ValueId, at: BlockId) -> ValueId {
        let mut open = Vec::new();
        let found = self.look(value, at, &mut open);
        while let Some((block, phi)) = open.pop() {
            let predecessors = self.graph.blocks[block.index()].predecessors.clone();
            let mut all = Vec::with_capacity(predecessors.len());
            for from in predecessors {
                all.push(self.look(value, from, &mut open));
            }
            self.graph.nodes[phi.index()].op = Op::Phi(all);
        }
        found
    }

    /// Walks up through single predecessors to a known definition. At a join, inserts a phi without
    /// operands.
    fn look(&mut self, value: ValueId, at: BlockId, open: &mut Vec<(BlockId, ValueId)>) -> ValueId {
        let mut path = Vec::new();
        let mut here = at;
        let found = loop {
            if here == self.block {
                break value;
            }
            if let Some(known) = self.definitions[&value].get(&here) {
                break *known;
            }
            path.push(here);
            match self.graph.blocks[here.index()].predecessors[..] {
                [] => break value,
                [one] => here = one,
                _ => {
                    let phi = self.phi(value, here);
                    open.push((here, phi));
                    break phi;
                }
            }
        };
        if let Some(definitions) = self.definitions.get_mut(&value) {
            definitions.extend(path.into_iter().map(|at| (at, found)));
        }
        found
    }

    /// Adds a phi without operands to a block.
    fn phi(&mut self, value: ValueId, at: BlockId) -> ValueId {
        let span = self.graph.nodes[value.index()].span;
        let phi = self.graph.add(Op::Phi(Vec::new()), span);
        self.graph.blocks[at.index()].phis.push(phi);
        self.graph.homes.insert(phi, at);
        phi
    }
}
