//! Instruction selection (RFC 9669).

mod jumps;
mod moves;
mod places;
mod values;

use std::collections::HashMap;

use p4_object::{Instruction, LinkedCall};
use p4_syntax::source::Span;

use super::moves::Source;
use super::registers::Place;
use crate::flat::{BlockId, Graph, Op, ValueId};

/// First scratch register.
const SCRATCH: u8 = 0;
/// Second scratch register.
const SECOND_SCRATCH: u8 = 5;

/// Generated code, with the source location of each instruction.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub instructions: Vec<Instruction>,
    pub spans: Vec<Span>,
    /// Calls of libraries' functions, whose immediates are to be set.
    pub linked_calls: Vec<LinkedCall>,
    /// Set if a jump offset does not fit into an instruction.
    pub too_far: bool,
}

/// State of code generation.
pub(super) struct Emit<'g> {
    graph: &'g Graph,
    places: &'g HashMap<ValueId, Place>,
    /// Number of stack words above the spilled values: memory that is passed to calls.
    frame: u32,
    code: Code,
    span: Span,
    /// Index of the first instruction of each block.
    starts: HashMap<BlockId, usize>,
    /// Jumps to be linked: the index of the instruction, and its target.
    jumps: Vec<(usize, BlockId)>,
}

/// Generates code for a graph with this block order.
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
    // Blocks that do nothing get no code.
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
