//! The order of blocks, and which of them all ways to another lead through (Cooper, Harvey and
//! Kennedy, A Simple, Fast Dominance Algorithm, 2001).

use super::{BlockId, Graph};

/// Which blocks dominate which.
pub(super) struct Dominators {
    /// Of each block, the nearest other one that all ways lead through.
    above: Vec<Option<BlockId>>,
    /// Of each block, its place in the order.
    place: Vec<usize>,
}

impl Graph {
    /// The blocks that are reached, each behind those that lead to it, but for loops.
    pub(crate) fn order(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut open = vec![(BlockId(0), false)];
        while let Some((block, done)) = open.pop() {
            if done {
                order.push(block);
                continue;
            }
            if std::mem::replace(&mut seen[block.index()], true) {
                continue;
            }
            open.push((block, true));
            let targets: Vec<_> = self.blocks[block.index()].end.targets().collect();
            // The first is laid out right behind.
            open.extend(
                targets.into_iter().rev().filter(|to| !seen[to.index()]).map(|to| (to, false)),
            );
        }
        order.reverse();
        order
    }

    pub(super) fn dominators(&self, order: &[BlockId]) -> Dominators {
        let mut place = vec![usize::MAX; self.blocks.len()];
        for (at, block) in order.iter().enumerate() {
            place[block.index()] = at;
        }
        let mut above: Vec<Option<BlockId>> = vec![None; self.blocks.len()];
        let first = order[0];
        above[first.index()] = Some(first);
        let mut changed = true;
        while changed {
            changed = false;
            for block in &order[1..] {
                let mut found: Option<BlockId> = None;
                for from in &self.blocks[block.index()].predecessors {
                    if above[from.index()].is_none() {
                        continue;
                    }
                    found = Some(match found {
                        None => *from,
                        Some(mut other) => {
                            let mut one = *from;
                            while one != other {
                                while place[one.index()] > place[other.index()] {
                                    one = above[one.index()].unwrap_or(first);
                                }
                                while place[other.index()] > place[one.index()] {
                                    other = above[other.index()].unwrap_or(first);
                                }
                            }
                            one
                        }
                    });
                }
                if found.is_some() && above[block.index()] != found {
                    above[block.index()] = found;
                    changed = true;
                }
            }
        }
        above[first.index()] = None;
        Dominators { above, place }
    }
}

impl Dominators {
    /// The nearest block that all ways to this one lead through.
    pub(super) fn above(&self, block: BlockId) -> Option<BlockId> {
        self.above[block.index()]
    }

    /// Whether all ways to `below` lead through `block`; each dominates itself.
    pub(super) fn dominates(&self, block: BlockId, below: BlockId) -> bool {
        let mut at = Some(below);
        while let Some(one) = at {
            if one == block {
                return true;
            }
            if self.place[one.index()] < self.place[block.index()] {
                return false;
            }
            at = self.above(one);
        }
        false
    }
}
