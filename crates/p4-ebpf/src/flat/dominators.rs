//! Reverse postorder and dominators (Cooper, Harvey and Kennedy, A Simple, Fast Dominance
//! Algorithm, 2001).

use super::{BlockId, Graph};

/// Dominator tree.
pub(super) struct Dominators {
    /// Immediate dominator of each block.
    above: Vec<Option<BlockId>>,
    /// Position of each block in reverse postorder.
    place: Vec<usize>,
}

impl Graph {
    /// Returns the reachable blocks in reverse postorder: each block follows its predecessors,
    /// except along the back edges of loops.
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
            // The first successor is laid out directly after the block.
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
    /// Returns the immediate dominator of a block.
    pub(super) fn above(&self, block: BlockId) -> Option<BlockId> {
        self.above[block.index()]
    }

    /// Returns true if `block` dominates `below`. Each block dominates itself.
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
