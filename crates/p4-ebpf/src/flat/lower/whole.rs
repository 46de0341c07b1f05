//! Parser, pipeline and deparser in sequence.

use std::ops::Range;

use p4::ir::VariableId;
use p4::model::field;
use p4_object::action;
use p4_object::metadata;
use p4_syntax::source::Span;

use super::{Lower, Lowered, Paths, part};
use crate::flat::build::Slot;
use crate::flat::shape::Slots;
use crate::flat::{BlockId, Op, Terminator};

impl Lower<'_> {
    pub(super) fn whole(&mut self) -> Lowered {
        let [parser, pipeline, deparser] = self.elaborated.main[..] else {
            return self.refuse(Span::default(), "the program is not made for `ubpf`");
        };
        let parsed = self.parameters(parser);
        for id in &parsed[1..] {
            self.declare(*id);
        }
        let arrived = self.build.op(Op::Argument(1));
        let load = |offset| Op::Load { base: arrived, offset, size: 4, constant: true };
        let port = self.build.op(load(metadata::INPUT_PORT));
        self.length = self.build.op(load(metadata::PACKET_LENGTH));
        let std = self.variable(parsed[3]);
        self.build.write(part(std, field::INPUT_PORT), port);
        self.build.write(part(std, field::PACKET_LENGTH), self.length);
        let pass = self.build.constant(action::PASS as u64);
        self.build.write(part(std, field::OUTPUT_ACTION), pass);
        let all = self.build.constant(u64::from(u32::MAX));
        self.build.write(self.truncated, all);

        self.metadata = vec![parsed[3]];
        let nowhere = self.build.new_block();
        let parsers = self.ends(parser, nowhere)?;
        self.settle_parser(&parsers, &parsed);
        let mut ends = Vec::new();
        for end in parsers {
            ends.push(self.run_pipeline(end, parser, pipeline)?);
        }
        let piped = self.parameters(pipeline);
        let mut writings = Vec::new();
        for end in self.split_ends(ends, &piped) {
            self.build.block = end;
            writings.push(self.deparse(piped[0], self.variable(piped[2]), deparser)?);
        }
        self.write_packets(writings)?;

        let reject = self.reject;
        self.build.continue_in(reject);
        self.abort();
        Ok(())
    }

    /// Simplifies the graph at the ends of the parser, so that constants in slots become known.
    fn settle_parser(&mut self, ends: &[BlockId], parsed: &[VariableId]) {
        let mut slots = vec![self.at, self.truncated];
        for id in &parsed[1..] {
            slots.extend(self.slots_of(*id));
        }
        let ends: Vec<_> = ends.iter().map(|end| (*end, slots.clone())).collect();
        for (end, _) in &ends {
            self.build.seal(*end);
        }
        self.build.settle(&ends, Some(&[self.reject]));
    }

    /// Lowers the pipeline after one end of the parser. Returns the block where the pipeline ends.
    fn run_pipeline(&mut self, end: BlockId, parser: usize, pipeline: usize) -> Lowered<BlockId> {
        self.build.block = end;
        let (parsed, piped) = (self.parameters(parser), self.parameters(pipeline));
        for (from, to) in parsed[1..].iter().zip(&piped) {
            self.copy(*from, *to);
        }
        self.metadata = vec![piped[2]];
        let exit = self.build.new_block();
        self.exit = exit;
        self.block(pipeline)?;
        self.build.jump(exit);
        self.build.continue_in(exit);
        Ok(exit)
    }

    /// Splits the ends of the pipeline by the headers and the packet state with which packets
    /// leave.
    fn split_ends(&mut self, ends: Vec<BlockId>, piped: &[VariableId]) -> Vec<BlockId> {
        if self.paths == Paths::Joined {
            return ends;
        }
        let std = self.variable(piped[2]);
        let mut slots = self.packet_slots(std);
        slots.extend(self.slots_of(piped[0]));
        let mut selectors = vec![self.at, self.truncated, part(std, field::OUTPUT_ACTION)];
        self.path_slots(&self.type_of(piped[0]), self.variable(piped[0]), true, &mut selectors);
        let ends: Vec<_> = ends.into_iter().map(|end| (end, slots.clone())).collect();
        self.build.settle(&ends, None);
        let mut parts = Vec::new();
        for (end, slots) in &ends {
            parts.extend(self.build.split(*end, slots, &selectors));
        }
        parts
    }

    /// Returns the slots of a variable.
    fn slots_of(&self, id: VariableId) -> Range<Slot> {
        let first = self.variable(id);
        first..first + self.program.slots(&self.type_of(id))
    }

    /// Returns the slots of the packet state besides its headers: the read offset, the length to
    /// truncate to, and the model's metadata.
    pub(super) fn packet_slots(&self, std: Slot) -> Vec<Slot> {
        let mut slots = vec![self.at, self.truncated];
        slots.extend(std..part(std, field::NAMES.len()));
        slots
    }

    /// Aborts the program: the packet is not changed.
    fn abort(&mut self) {
        let base = self.build.op(Op::Argument(1));
        let value = self.build.constant(action::ABORT as u64);
        let offset = metadata::OUTPUT_ACTION;
        self.build.op(Op::Store { base, offset, size: 4, value });
        self.build.end(Terminator::Return(value));
    }
}
