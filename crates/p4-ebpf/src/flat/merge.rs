//! Common subexpression elimination.

use std::collections::HashMap;

use super::replacements::Replacements;
use super::{BlockId, Graph, Op, ValueId};

impl Graph {
    /// Replaces a pure operation by an equal one that dominates it.
    pub(super) fn merge(&mut self) {
        let order = self.order();
        let dominators = self.dominators(&order);
        let mut replacements = Replacements::default();
        let mut known: HashMap<Op, Vec<(BlockId, ValueId)>> = HashMap::new();
        for block in &order {
            let all: Vec<_> = {
                let block = &self.blocks[block.index()];
                block.phis.iter().chain(&block.body).copied().collect()
            };
            for id in all {
                let mut op = self.op(id).clone();
                op.visit_operands_mut(|one| *one = replacements.of(*one));
                self.nodes[id.index()].op = op.clone();
                // Phis are equal only within one block; other operations wherever the earlier one
                // dominates.
                let is_phi = matches!(op, Op::Phi(_));
                if !op.is_pure() && !is_phi {
                    continue;
                }
                let before = known.entry(op).or_default();
                let same = before.iter().find(|(at, _)| {
                    if is_phi { at == block } else { dominators.dominates(*at, *block) }
                });
                match same {
                    Some((_, same)) => {
                        replacements.insert(id, *same);
                    }
                    None => before.push((*block, id)),
                }
            }
        }
        self.replace(&replacements);
    }
}
