//! Values that have turned out to be others.

use std::collections::HashMap;

use super::{Graph, ValueId};

/// Which values are others now.
#[derive(Debug, Default)]
pub(crate) struct Instead(HashMap<ValueId, ValueId>);

impl Instead {
    /// What a value has turned out to be.
    pub(super) fn of(&self, mut value: ValueId) -> ValueId {
        while let Some(other) = self.0.get(&value) {
            value = *other;
        }
        value
    }

    /// A value is another one.
    pub(crate) fn insert(&mut self, value: ValueId, other: ValueId) {
        self.0.insert(value, other);
    }

    pub(super) fn contains_key(&self, value: &ValueId) -> bool {
        self.0.contains_key(value)
    }
}

impl Graph {
    /// Puts others in the place of values.
    pub(crate) fn replace(&mut self, instead: &Instead) {
        let resolve = |value: &mut ValueId| *value = instead.of(*value);
        for node in &mut self.nodes {
            node.op.each_operand(resolve);
        }
        for block in &mut self.blocks {
            block.end.each_operand(resolve);
            block.phis.retain(|one| !instead.contains_key(one));
            block.body.retain(|one| !instead.contains_key(one));
        }
    }
}
