//! Moves of phi operands and call arguments.

use p4_object::opcode::class;
use p4_object::{FRAME, Instruction};

use super::super::moves::{Source, in_order};
use super::super::opcodes::{memory, small};
use super::super::registers::Place;
use super::{Emit, SCRATCH};
use crate::flat::{BlockId, Op, ValueId};

impl Emit<'_> {
    /// Returns the moves of the phi operands on an edge.
    pub(super) fn phi_moves(&self, from: BlockId, to: BlockId) -> Vec<(Place, Source)> {
        let block = &self.graph.blocks[to.index()];
        let Some(edge) = block.predecessors.iter().position(|one| *one == from) else {
            return Vec::new();
        };
        let moved = |phi: &ValueId| match (self.graph.op(*phi), self.places.get(phi)) {
            (Op::Phi(all), Some(place)) if *self.graph.op(all[edge]) != Op::Undefined => {
                Some((*place, self.source(all[edge])))
            }
            _ => None,
        };
        block.phis.iter().filter_map(moved).collect()
    }

    pub(super) fn moves(&mut self, moves: Vec<(Place, Source)>) {
        for (to, from) in in_order(moves) {
            match (to, from) {
                (Place::Register(to), Source::Place(from)) => self.get(to, from),
                (Place::Register(to), Source::Value(value)) => self.load(to, value),
                (to, Source::Place(Place::Register(from))) => self.put(to, from),
                (to, Source::Place(from)) => {
                    self.get(SCRATCH, from);
                    self.put(to, SCRATCH);
                }
                (Place::Stack(word), Source::Value(value)) => {
                    match self.graph.constant(value).and_then(small) {
                        Some(value) => {
                            let offset = self.offset(word);
                            let plain = memory(class::ST, 8, FRAME, 0, offset);
                            self.push(Instruction { immediate: value, ..plain });
                        }
                        None => {
                            self.load(SCRATCH, value);
                            self.put(to, SCRATCH);
                        }
                    }
                }
            }
        }
    }
}
