//! Writes instructions (RFC 9669).

mod jumps;
mod moves;
mod places;
mod values;

use std::collections::HashMap;

use super::moves::Source;
use super::registers::Place;
use crate::flat::{BlockId, Graph, Op, ValueId};
use crate::object::Instruction;
use crate::source::Span;

/// Holds what is on its way.
const WAY: u8 = 0;
/// Holds what else is on its way.
const OTHER: u8 = 5;

/// Code, and where in the source its instructions come from.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    pub spans: Vec<Span>,
    /// A jump that is farther than an instruction can say.
    pub too_far: bool,
}

/// What is written.
pub(super) struct Emit<'g> {
    graph: &'g Graph,
    places: &'g HashMap<ValueId, Place>,
    /// Words of the stack above those of values: what calls are told.
    frame: u32,
    code: Code,
    span: Span,
    /// Where blocks begin.
    starts: HashMap<BlockId, usize>,
    /// Jumps to blocks.
    jumps: Vec<(usize, BlockId)>,
}

/// The code of a graph whose blocks stand in this order.
pub(super) fn emit(graph: &Graph, order: &[BlockId], places: &HashMap<ValueId, Place>) -> Code {
    let mut emit = Emit {
        graph,
        places,
        frame: graph.frame,
        code: Code::default(),
        span: Span::default(),
        starts: HashMap::new(),
        jumps: Vec::new(),
    };
    // What does nothing has no code.
    let order: Vec<_> = order.iter().copied().filter(|one| emit.behind(*one) == *one).collect();
    for (at, block) in order.iter().enumerate() {
        emit.starts.insert(*block, emit.code.instructions.len());
        emit.block(*block, order.get(at + 1).copied());
    }
    emit.link();
    emit.code
}

impl Emit<'_> {
    fn block(&mut self, id: BlockId, next: Option<BlockId>) {
        let block = &self.graph.blocks[id.index()];
        let is_argument = |id: &&ValueId| matches!(self.graph.op(**id), Op::Argument(_));
        let arguments: Vec<_> = block.body.iter().take_while(is_argument).copied().collect();
        let moves = arguments.iter().filter_map(|id| match self.graph.op(*id) {
            Op::Argument(at) => {
                let from = Source::Place(Place::Register(at + 1));
                Some((*self.places.get(id)?, from))
            }
            _ => None,
        });
        self.moves(moves.collect());
        for value in &block.body[arguments.len()..] {
            self.span = self.graph.nodes[value.index()].span;
            self.value(*value);
        }
        self.end(id, next);
    }

    fn push(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
        self.code.spans.push(self.span);
    }
}
