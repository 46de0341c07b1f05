//! Deparsers (P4_16 specification, section 16), and the output of the packet.
//!
//! The packet grows or shrinks at its head, so the payload stays in place. Most headers leave at
//! the offset at which they were extracted: only fields that may have changed are stored. A header
//! that moves is read word by word before anything is stored.

mod moves;
mod parts;
mod stores;

use p4::ir::{Expression, Type, VariableId};
use p4::model::field;
use p4_object::action;
use p4_object::helper;
use p4_object::metadata;
use p4_syntax::source::Span;

use super::{Lower, Lowered, part};
use crate::flat::build::Slot;
use crate::flat::shape::Slots;
use crate::flat::{Binary, BlockId, Compare, Function, Op, Terminator, ValueId};

/// A packet to be written.
pub(super) struct Writing {
    /// Block in which writing begins.
    block: BlockId,
    /// Emitted headers, in order.
    sites: Vec<Site>,
    /// First slot of the model's metadata.
    std: Slot,
    /// Block that separates dropped packets with a clone from those without.
    dropped: BlockId,
}

/// An `emit` of one header.
pub(super) struct Site {
    of: Type,
    /// Copy of the header; invalid if the `emit` is not reached.
    slots: Slot,
    span: Span,
}

impl Lower<'_> {
    /// `packet.emit(value)`: records a copy of each header of the value.
    pub(super) fn emit(&mut self, value: &Expression) -> Lowered {
        if self.within_loops > 0 {
            return self.refuse(value.span, "`emit` in a loop");
        }
        let found = self.value(value)?;
        self.emit_value(&value.of, &found, value.span);
        Ok(())
    }

    fn emit_value(&mut self, of: &Type, value: &[ValueId], span: Span) {
        if self.program.is_header(of) {
            let slots = self.slots(value.len() as u32);
            self.write_all(slots, value);
            self.emitted.push(Site { of: of.clone(), slots, span });
            return;
        }
        for (of, range) in self.program.placed_parts(of) {
            let range = range.start as usize..range.end as usize;
            self.emit_value(&of, &value[range], span);
        }
    }

    /// Lowers the deparser. A packet that is neither sent nor cloned skips it.
    pub(super) fn deparse(
        &mut self,
        headers: VariableId,
        std: Slot,
        deparser: usize,
    ) -> Lowered<Writing> {
        let becomes = self.build.read(part(std, field::OUTPUT_ACTION));
        // An aborted packet is not written, nor a dropped one without a clone.
        let wrong = self.build.constant(action::ABORT as u64);
        let goes_on = self.build.compare(Compare::NotEqual, becomes, wrong);
        self.require(goes_on);
        let drop = self.build.constant(action::DROP as u64);
        let is_dropped = self.build.compare(Compare::Equal, becomes, drop);
        let (dropped, write, gone, end) = (
            self.build.new_block(),
            self.build.new_block(),
            self.build.new_block(),
            self.build.new_block(),
        );
        self.build.branch(is_dropped, dropped, write);
        self.build.continue_in(dropped);
        let clone = self.build.read(part(std, field::CLONE));
        self.build.branch(clone, write, gone);
        self.build.continue_in(gone);
        self.finish(std, false);
        self.build.continue_in(write);

        let inner = self.parameters(deparser)[1];
        self.copy(headers, inner);
        self.metadata.clear();
        self.exit = end;
        self.block(deparser)?;
        self.build.jump(end);
        self.build.continue_in(end);
        Ok(Writing { block: end, sites: std::mem::take(&mut self.emitted), std, dropped })
    }

    /// Writes the packets as the deparser emitted them, and ends the program.
    pub(super) fn write_packets(&mut self, writings: Vec<Writing>) -> Lowered {
        // The constants known at this point decide which fields have to be stored.
        let ends: Vec<_> = writings.iter().map(|one| (one.block, self.needed(one))).collect();
        let mut leads = vec![self.reject];
        leads.extend(writings.iter().map(|one| one.dropped));
        self.build.settle(&ends, Some(&leads));
        self.order = (0..).zip(self.build.graph.order()).map(|(at, block)| (block, at)).collect();
        for one in writings {
            // A block is unreachable if its packets are always dropped.
            if self.order.contains_key(&one.block) {
                self.build.block = one.block;
                self.write_packet(one.sites)?;
                self.finish(one.std, true);
            }
        }
        Ok(())
    }

    /// Returns the slots needed to write a packet.
    fn needed(&self, writing: &Writing) -> Vec<Slot> {
        let mut slots = self.packet_slots(writing.std);
        for site in &writing.sites {
            slots.extend(site.slots..site.slots + self.program.slots(&site.of));
        }
        slots
    }

    /// Stores the output action and the output ports, and returns.
    fn finish(&mut self, std: Slot, leaves: bool) {
        let base = self.build.op(Op::Argument(1));
        let becomes = self.build.read(part(std, field::OUTPUT_ACTION));
        self.build.op(Op::Store { base, offset: metadata::OUTPUT_ACTION, size: 4, value: becomes });
        let ports = [
            (metadata::OUTPUT_PORT, 4, field::OUTPUT_PORT),
            (metadata::CLONE, 1, field::CLONE),
            (metadata::CLONE_PORT, 4, field::CLONE_PORT),
        ];
        for (offset, size, field) in ports.into_iter().filter(|_| leaves) {
            let value = self.build.read(part(std, field));
            // The metadata is initially zero.
            if self.build.graph.constant(value) != Some(0) {
                self.build.op(Op::Store { base, offset, size, value });
            }
        }
        let drop = self.build.constant(action::DROP as u64);
        let passes = self.build.compare(Compare::Less, drop, becomes);
        self.build.end(Terminator::Return(passes));
    }

    // ---- the packet ----

    fn write_packet(&mut self, sites: Vec<Site>) -> Lowered {
        let read = self.build.read(self.at);
        let mut to = self.build.constant(0);
        let mut parts = Vec::new();
        let mut varying = Vec::new();
        for site in sites {
            let value = self.read_all(site.slots, self.program.slots(&site.of));
            to = self.part(&site, &value, to, (&mut parts, &mut varying));
        }
        let more = self.build.binary(Binary::Subtract, to, read);
        for part in &mut parts {
            part.moved = self.is_moved(part.valid, part.from, part.to, more);
            if part.pieces.iter().all(|piece| !piece.clean) {
                part.moved = self.build.constant(0);
            }
        }
        let mut waiting = self.take_varying(&varying, more);
        let taken = self.take_all(&parts, &mut waiting)?;
        let here = self.build.block;
        self.build.graph.barriers.push(here);
        let writes = self.build.new_block();
        self.build.jump(writes);
        self.build.continue_in(writes);

        let begin = self.adjust_head(more);
        self.put_varying(&varying, &waiting, begin);
        self.store_all(&parts, &taken, begin, waiting.base);
        self.truncate();
        Ok(())
    }

    /// Grows or shrinks the packet at its head. Returns the address of its first byte.
    fn adjust_head(&mut self, more: ValueId) -> ValueId {
        let packet = self.build.op(Op::Packet);
        if self.build.graph.constant(more) == Some(0) {
            return packet;
        }
        let begin = self.slots(1);
        self.build.write(begin, packet);
        let (grow, after) = (self.build.new_block(), self.build.new_block());
        self.build.branch(more, grow, after);
        self.build.continue_in(grow);
        let context = self.build.op(Op::Argument(0));
        let found =
            self.build.op(Op::Call(Function::Helper(helper::ADJUST_HEAD), vec![context, more]));
        self.require(found);
        self.build.write(begin, found);
        self.build.jump(after);
        self.build.continue_in(after);
        self.build.read(begin)
    }

    fn truncate(&mut self) {
        let most = self.build.read(self.truncated);
        let all = self.build.constant(u64::from(u32::MAX));
        let cuts = self.build.compare(Compare::NotEqual, most, all);
        let (cut, after) = (self.build.new_block(), self.build.new_block());
        self.build.branch(cuts, cut, after);
        self.build.continue_in(cut);
        let context = self.build.op(Op::Argument(0));
        self.build.op(Op::Call(Function::Helper(helper::TRUNCATE), vec![context, most]));
        self.build.jump(after);
        self.build.continue_in(after);
    }
}
