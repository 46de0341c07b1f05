//! Simplifies the graph until nothing changes: folds constants, and removes branches that are never
//! taken and trivial phis.

use std::collections::HashSet;

use super::fold::Folded;
use super::replacements::Replacements;
use super::{BlockId, Compare, Graph, Op, Terminator, ValueId};

impl Graph {
    /// Simplifies the graph. Returns the replacements of removed values.
    pub(super) fn simplify(&mut self) -> Replacements {
        let mut replacements = Replacements::default();
        loop {
            let order = self.order();
            self.cut_off(&order);
            let mut changed = false;
            for block in &order {
                changed |= self.simplify_phis(*block, &mut replacements);
                changed |= self.simplify_body(*block, &mut replacements);
                changed |= self.simplify_end(*block, &replacements);
            }
            if !changed {
                break;
            }
        }
        self.replace(&replacements);
        replacements
    }

    /// Removes unreachable blocks.
    fn cut_off(&mut self, order: &[BlockId]) {
        let reached: HashSet<_> = order.iter().copied().collect();
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            if !reached.contains(&block) {
                let end = std::mem::take(&mut self.blocks[block.index()].end);
                for to in end.targets() {
                    self.remove_edge(block, to);
                }
                let block = &mut self.blocks[block.index()];
                block.body.clear();
                block.phis.clear();
            }
        }
    }

    /// Removes one edge from a block to another.
    fn remove_edge(&mut self, from: BlockId, to: BlockId) {
        let block = &mut self.blocks[to.index()];
        let Some(at) = block.predecessors.iter().position(|one| *one == from) else { return };
        block.predecessors.remove(at);
        for phi in block.phis.clone() {
            if let Op::Phi(all) = &mut self.nodes[phi.index()].op
                && at < all.len()
            {
                all.remove(at);
            }
        }
    }

    fn simplify_phis(&mut self, block: BlockId, replacements: &mut Replacements) -> bool {
        let mut changed = false;
        for phi in self.blocks[block.index()].phis.clone() {
            if replacements.contains_key(&phi) {
                continue;
            }
            let Op::Phi(all) = &mut self.nodes[phi.index()].op else { continue };
            all.iter_mut().for_each(|one| *one = replacements.of(*one));
            let all = all.clone();
            let mut others = all.iter().filter(|one| **one != phi);
            let Some(first) = others.next().copied() else { continue };
            let is_one = others.all(|one| *one == first);
            // An undefined operand may take any value.
            let looked_at = || all.iter().find(|one| !matches!(self.op(**one), Op::Undefined));
            let number = looked_at().copied().filter(|number| {
                self.constant(*number).is_some()
                    && all.iter().all(|one| one == number || *self.op(*one) == Op::Undefined)
            });
            if let Some(value) = is_one.then_some(first).or(number) {
                replacements.insert(phi, value);
                changed = true;
            }
        }
        if changed {
            self.blocks[block.index()].phis.retain(|phi| !replacements.contains_key(phi));
        }
        changed
    }

    fn simplify_body(&mut self, block: BlockId, replacements: &mut Replacements) -> bool {
        let mut changed = false;
        for id in self.blocks[block.index()].body.clone() {
            let span = self.nodes[id.index()].span;
            let mut op = self.op(id).clone();
            op.visit_operands_mut(|one| *one = replacements.of(*one));
            let constant = |graph: &mut Self, number| graph.add(Op::Constant(number), span);
            let value = loop {
                if let Some(phi) = self.fold_phis(&op) {
                    break Some(phi);
                }
                match self.fold(&op) {
                    Folded::Value(value) => break Some(value),
                    Folded::Constant(number) => break Some(constant(self, number)),
                    Folded::Op(simpler) => op = simpler,
                    Folded::By(operator, left, right) => {
                        let right = constant(self, right);
                        op = Op::Binary(operator, left, right);
                    }
                    Folded::Same => break None,
                }
            };
            match value {
                Some(value) => {
                    replacements.insert(id, value);
                    changed = true;
                }
                None if *self.op(id) != op => {
                    self.nodes[id.index()].op = op;
                    changed = true;
                }
                None => {}
            }
        }
        if changed {
            self.blocks[block.index()].body.retain(|id| !replacements.contains_key(id));
        }
        // Unplaced operations are in no block, but their operands may have been replaced.
        changed
    }

    fn simplify_end(&mut self, block: BlockId, replacements: &Replacements) -> bool {
        let mut end = self.blocks[block.index()].end;
        end.visit_operands_mut(|one| *one = replacements.of(*one));
        let mut changed = false;
        if let Terminator::Branch { condition, operands: (left, right), then, otherwise } = &mut end
            && matches!(condition, Compare::Equal | Compare::NotEqual)
            && self.constant(*right) == Some(0)
            && let Op::Compare(inner, one, other) = self.op(*left)
        {
            let (one, other) = (replacements.of(*one), replacements.of(*other));
            if *condition == Compare::Equal {
                std::mem::swap(then, otherwise);
            }
            (*condition, *left, *right) = (*inner, one, other);
            changed = true;
        }
        if let Terminator::Branch { condition, operands: (left, right), then, otherwise } = end {
            let held = match self.fold(&Op::Compare(condition, left, right)) {
                Folded::Constant(number) => Some(number != 0),
                _ if then == otherwise => Some(true),
                _ => None,
            };
            if let Some(held) = held {
                let (taken, other) = if held { (then, otherwise) } else { (otherwise, then) };
                end = Terminator::Jump(taken);
                self.blocks[block.index()].end = end;
                self.remove_edge(block, other);
                return true;
            }
        }
        self.blocks[block.index()].end = end;
        changed
    }

    /// Folds an operation on phis of one block that have only constant operands into such a phi.
    pub(super) fn fold_phis(&mut self, op: &Op) -> Option<ValueId> {
        if !matches!(op, Op::Binary(..) | Op::Compare(..) | Op::Select(..)) {
            return None;
        }
        let operands = op.operands();
        let mut home = None;
        for one in &operands {
            match self.op(*one) {
                Op::Constant(_) => {}
                Op::Phi(all) if !all.is_empty() => {
                    let block = *self.homes.get(one)?;
                    if *home.get_or_insert(block) != block
                        || all.iter().any(|one| self.constant(*one).is_none())
                    {
                        return None;
                    }
                }
                _ => return None,
            }
        }
        let block = home?;
        let edges = self.blocks[block.index()].predecessors.len();
        let by = |one: &ValueId, edge: usize| match self.op(*one) {
            Op::Phi(all) => all.get(edge).and_then(|one| self.constant(*one)),
            _ => self.constant(*one),
        };
        let mut numbers = Vec::with_capacity(edges);
        for edge in 0..edges {
            let known: Vec<_> = operands.iter().map(|one| by(one, edge)).collect::<Option<_>>()?;
            numbers.push(match (op, &known[..]) {
                (Op::Binary(operator, ..), [left, right]) => operator.of(*left, *right),
                (Op::Compare(compare, ..), [left, right]) => u64::from(compare.of(*left, *right)),
                (Op::Select(..), [condition, yes, no]) => {
                    if *condition != 0 {
                        *yes
                    } else {
                        *no
                    }
                }
                _ => return None,
            });
        }
        let span = self.nodes[operands[0].index()].span;
        let first = *numbers.first()?;
        if numbers.iter().all(|one| *one == first) {
            return Some(self.add(Op::Constant(first), span));
        }
        let known = self.blocks[block.index()].phis.iter().copied().find(|phi| {
            matches!(self.op(*phi), Op::Phi(all) if all.len() == numbers.len()
                && all.iter().zip(&numbers).all(|(one, number)| self.constant(*one) == Some(*number)))
        });
        if known.is_some() {
            return known;
        }
        let all = numbers.iter().map(|one| self.add(Op::Constant(*one), span)).collect();
        let phi = self.add(Op::Phi(all), span);
        self.blocks[block.index()].phis.push(phi);
        self.homes.insert(phi, block);
        Some(phi)
    }

    /// Removes dead code.
    pub(super) fn remove_dead_code(&mut self) {
        let mut needed = HashSet::new();
        let mut open = Vec::new();
        for block in &mut self.blocks {
            block.end.visit_operands_mut(|one| open.push(*one));
        }
        for block in &self.blocks {
            open.extend(block.body.iter().filter(|id| self.op(**id).has_side_effects()));
        }
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                open.extend(self.op(id).operands());
            }
        }
        for block in &mut self.blocks {
            block.phis.retain(|id| needed.contains(id));
            block.body.retain(|id| needed.contains(id));
        }
    }
}
