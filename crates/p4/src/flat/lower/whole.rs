//! Parser, pipeline and deparser, one behind the other.

use super::deparser::Writing;
use super::{Lower, Lowered, part};
use crate::flat::{BlockId, End, Op};
use crate::layout::metadata;
use crate::model::{action, field};
use crate::source::Span;

impl Lower<'_> {
    pub(super) fn whole(&mut self) -> Lowered {
        let [parser, pipeline, deparser] = self.made.main[..] else {
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
        let mut writings = Vec::new();
        for end in self.ends(parser, nowhere)? {
            writings.push(self.behind_parser(end, [parser, pipeline, deparser])?);
        }
        self.write_packets(writings)?;

        let reject = self.reject;
        self.build.continue_in(reject);
        self.abort();
        Ok(())
    }

    /// From an end of the parser to where the packet is written.
    fn behind_parser(
        &mut self,
        end: BlockId,
        [parser, pipeline, deparser]: [usize; 3],
    ) -> Lowered<Writing> {
        self.build.continue_in(end);
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
        self.deparse(piped[0], self.variable(piped[2]), deparser)
    }

    /// Ends the run: the packet stays as it came.
    fn abort(&mut self) {
        let base = self.build.op(Op::Argument(1));
        let value = self.build.constant(action::ABORT as u64);
        let offset = metadata::OUTPUT_ACTION;
        self.build.op(Op::Store { base, offset, size: 4, value });
        self.build.end(End::Return(value));
    }
}
