//! Reverse postorder and dominators (Cooper, Harvey and Kennedy, A Simple, Fast Dominance
//! Algorithm, 2001).

use super::{BlockId, Graph};

/// Dominator tree.
pub(super) struct Dominators {
    /// First and last number of each block's subtree, in a walk of the tree; empty for blocks that
    /// are not reached.
    subtree: Vec<(u32, u32)>,
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
        Dominators { subtree: subtrees(order, &above) }
    }
}

/// Numbers the blocks in a walk of the tree of immediate dominators, each before those that it dominates.
fn subtrees(order: &[BlockId], above: &[Option<BlockId>]) -> Vec<(u32, u32)> {
    let mut below = vec![Vec::new(); above.len()];
    for block in order {
        if let Some(above) = above[block.index()] {
            below[above.index()].push(*block);
        }
    }
    let mut numbers = vec![(u32::MAX, 0); above.len()];
    let (mut next, mut open) = (1, vec![(order[0], false)]);
    while let Some((block, is_done)) = open.pop() {
        let number = &mut numbers[block.index()];
        if is_done {
            number.1 = next - 1;
            continue;
        }
        number.0 = next;
        next += 1;
        open.push((block, true));
        open.extend(below[block.index()].iter().map(|block| (*block, false)));
    }
    numbers
}

impl Dominators {
    /// Returns true if `block` dominates `below`. Each block dominates itself.
    pub(super) fn dominates(&self, block: BlockId, below: BlockId) -> bool {
        let (first, last) = self.subtree[block.index()];
        block == below || (first..=last).contains(&self.subtree[below.index()].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_dominates_those_below_it() {
        // 0 is above 1 and 4, 1 above 2 and 3, 4 above 5; 6 is not reached.
        let above =
            [None, Some(0), Some(1), Some(1), Some(0), Some(4), None].map(|it| it.map(BlockId));
        let order: Vec<_> = [0, 4, 5, 1, 3, 2].map(BlockId).into();
        let tree = Dominators { subtree: subtrees(&order, &above) };
        let walked = |block: u32, below: u32| {
            let mut at = Some(BlockId(below));
            while let Some(one) = at {
                if one == BlockId(block) {
                    return true;
                }
                at = above[one.index()];
            }
            false
        };
        for block in 0..7 {
            for below in 0..7 {
                let dominates = tree.dominates(BlockId(block), BlockId(below));
                assert_eq!(dominates, walked(block, below), "{block} {below}");
            }
        }
    }
}
