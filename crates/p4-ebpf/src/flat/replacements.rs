//! Replacement of values.

use std::collections::HashMap;

use super::{Graph, ValueId};

/// Map from replaced values to their replacements.
#[derive(Debug, Default)]
pub(crate) struct Replacements(HashMap<ValueId, ValueId>);

impl Replacements {
    /// Returns the final replacement of a value, or the value itself.
    pub(super) fn of(&self, mut value: ValueId) -> ValueId {
        while let Some(other) = self.0.get(&value) {
            value = *other;
        }
        value
    }

    /// Records that `value` is replaced by `other`.
    pub(crate) fn insert(&mut self, value: ValueId, other: ValueId) {
        self.0.insert(value, other);
    }

    pub(super) fn contains_key(&self, value: &ValueId) -> bool {
        self.0.contains_key(value)
    }
}

impl Graph {
    /// Rewrites all operands and removes the replaced values.
    pub(crate) fn replace(&mut self, replacements: &Replacements) {
        let resolve = |value: &mut ValueId| *value = replacements.of(*value);
        for node in &mut self.nodes {
            node.op.visit_operands_mut(resolve);
        }
        for block in &mut self.blocks {
            block.end.visit_operands_mut(resolve);
            block.phis.retain(|one| !replacements.contains_key(one));
            block.body.retain(|one| !replacements.contains_key(one));
        }
    }
}
