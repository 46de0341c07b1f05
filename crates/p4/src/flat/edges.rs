//! Ways between blocks.

use super::{Block, BlockId, End, Graph};

impl Graph {
    /// Values that meet somewhere are moved on the way: so a block that leads to two others leads to no
    /// block where values meet. What lies between gets a block of its own.
    pub(crate) fn split_edges(&mut self) {
        for block in self.order() {
            if let End::Branch { test, of, yes, no } = self.blocks[block.index()].end {
                let (yes, no) = (self.split(block, yes), self.split(block, no));
                self.blocks[block.index()].end = End::Branch { test, of, yes, no };
            }
        }
    }

    fn split(&mut self, from: BlockId, to: BlockId) -> BlockId {
        if self.blocks[to.index()].phis.is_empty() {
            return to;
        }
        let between = BlockId(self.blocks.len() as u32);
        let end = End::Jump(to);
        self.blocks.push(Block { predecessors: vec![from], end, ..Block::default() });
        let predecessors = &mut self.blocks[to.index()].predecessors;
        if let Some(at) = predecessors.iter().position(|one| *one == from) {
            predecessors[at] = between;
        }
        between
    }
}
