//! Splitting of critical edges.

use super::{Block, BlockId, Graph, Terminator};

impl Graph {
    /// Splits critical edges. Phi operands are moved into place on the incoming edge, so a block
    /// with two successors must not lead directly to a block with phis. A new block is inserted on
    /// such an edge.
    pub(crate) fn split_edges(&mut self) {
        for block in self.order() {
            if let Terminator::Branch { condition, operands, then, otherwise } =
                self.blocks[block.index()].end
            {
                let (then, otherwise) =
                    (self.split_edge(block, then), self.split_edge(block, otherwise));
                self.blocks[block.index()].end =
                    Terminator::Branch { condition, operands, then, otherwise };
            }
        }
    }

    fn split_edge(&mut self, from: BlockId, to: BlockId) -> BlockId {
        if self.blocks[to.index()].phis.is_empty() {
            return to;
        }
        let between = BlockId(self.blocks.len() as u32);
        let end = Terminator::Jump(to);
        self.blocks.push(Block { predecessors: vec![from], end, ..Block::default() });
        let predecessors = &mut self.blocks[to.index()].predecessors;
        if let Some(at) = predecessors.iter().position(|one| *one == from) {
            predecessors[at] = between;
        }
        between
    }
}
