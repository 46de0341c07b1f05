//! Parts of outgoing headers, and detection of fields that have not changed.

use std::collections::HashMap;

use p4::ir::Type;
use p4_syntax::source::Span;

use super::{Lower, Site};
use crate::flat::build::{Builder, Slot};
use crate::flat::shape::Slots;
use crate::flat::shape::{ORIGIN, VALID, limb_bits, limbs};
use crate::flat::{Binary, BlockId, Compare, Op, ValueId};

/// A number of up to 64 bits in a header.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(crate) value: ValueId,
    /// Bit offset from the start of the part.
    pub(crate) bit: u32,
    pub(crate) width: u32,
    /// True if the packet has the same value where the header was extracted.
    pub(crate) clean: bool,
}

/// Consecutive bytes of a header, all fields of which are at constant offsets.
pub(super) struct Part {
    /// Validity of the header.
    pub(crate) valid: ValueId,
    /// Byte offset in the received packet where the header was extracted.
    pub(crate) from: ValueId,
    /// Byte offset in the outgoing packet.
    pub(crate) to: ValueId,
    pub(crate) bytes: u32,
    pub(crate) pieces: Vec<Piece>,
    /// True if the part has to be copied from its old position.
    pub(crate) moved: ValueId,
    pub(crate) span: Span,
}

/// An outgoing varbit.
pub(super) struct Varying {
    pub(crate) valid: ValueId,
    /// Byte offset in the received packet.
    pub(crate) from: ValueId,
    /// Byte offset in the outgoing packet.
    pub(crate) to: ValueId,
    pub(crate) bytes: ValueId,
    /// Maximum size in bytes.
    pub(crate) most: u32,
}

impl Lower<'_> {
    /// Returns 1 if a valid header has to be moved.
    pub(super) fn is_moved(
        &mut self,
        valid: ValueId,
        from: ValueId,
        to: ValueId,
        more: ValueId,
    ) -> ValueId {
        let stays = self.build.binary(Binary::Add, from, more);
        let moved = self.build.compare(Compare::NotEqual, to, stays);
        self.build.binary(Binary::And, valid, moved)
    }

    /// Splits a header that leaves at offset `to` into parts. Returns the offset of the next
    /// header.
    pub(super) fn part(
        &mut self,
        site: &Site,
        value: &[ValueId],
        to: ValueId,
        (parts, varying): (&mut Vec<Part>, &mut Vec<Varying>),
    ) -> ValueId {
        let (valid, origin) = (value[VALID as usize], value[ORIGIN as usize]);
        let zero = self.build.constant(0);
        let mut part = Part {
            valid,
            from: origin,
            to,
            bytes: 0,
            pieces: Vec::new(),
            moved: zero,
            span: site.span,
        };
        let mut bit = 0;
        for (of, start) in self.wire_leaves(&site.of) {
            if let Type::Varbit(of_bits) = of {
                let (bits, first) = (value[start as usize], value[start as usize + 1]);
                let bytes = self.build.by(Binary::ShiftRight, bits, 3);
                part.bytes = bit / 8;
                let target = self.build.by(Binary::Add, part.to, u64::from(bit / 8));
                let most = of_bits.div_ceil(8);
                varying.push(Varying { valid, from: first, to: target, bytes, most });
                // A varbit ends the part: the offsets after it are variable.
                let (from, to) = (
                    self.build.binary(Binary::Add, first, bytes),
                    self.build.binary(Binary::Add, target, bytes),
                );
                let next = Part {
                    from,
                    to,
                    pieces: Vec::new(),
                    bytes: 0,
                    valid,
                    moved: zero,
                    span: site.span,
                };
                parts.push(std::mem::replace(&mut part, next));
                bit = 0;
                continue;
            }
            let width = self.width(&of);
            for limb in 0..limbs(width) {
                let bits = limb_bits(width, limb);
                let first = bit + width - limb * 64 - bits;
                let value = value[(start + limb) as usize];
                let place = (part.from, first, bits);
                let clean = self.build.is_clean(value, place, valid, &self.order);
                part.pieces.push(Piece { value, bit: first, width: bits, clean });
            }
            bit += width;
        }
        part.bytes = bit.div_ceil(8);
        part.pieces.sort_by_key(|piece| piece.bit);
        let behind = self.build.by(Binary::Add, part.to, u64::from(part.bytes));
        parts.push(part);
        // An invalid header is not written.
        self.build.select(valid, behind, to)
    }

    /// Returns the numbers of a header in wire order, with their slots.
    fn wire_leaves(&self, of: &Type) -> Vec<(Type, Slot)> {
        match of {
            Type::Record(_) | Type::Stack(..) | Type::Tuple(_) => {
                let parts = self.program.placed_parts(of).into_iter();
                let inside = |(of, range): (Type, std::ops::Range<Slot>)| {
                    let all = self.wire_leaves(&of).into_iter();
                    all.map(move |(of, slot)| (of, slot + range.start)).collect::<Vec<_>>()
                };
                parts.flat_map(inside).collect()
            }
            Type::New(id) => self.wire_leaves(&self.program.new_types[id.index()].of),
            _ => vec![(of.clone(), 0)],
        }
    }
}

impl Builder {
    /// Returns true if a value equals the packet's bits, starting `bit` bits after byte `from`,
    /// whenever the header is valid.
    fn is_clean(
        &self,
        value: ValueId,
        (from, bit, width): (ValueId, u32, u32),
        valid: ValueId,
        order: &HashMap<BlockId, usize>,
    ) -> bool {
        let mut assumed = Vec::new();
        self.clean_within((value, from, valid), (bit, width), order, &mut assumed)
    }

    fn clean_within(
        &self,
        of: (ValueId, ValueId, ValueId),
        (bit, width): (u32, u32),
        order: &HashMap<BlockId, usize>,
        assumed: &mut Vec<(ValueId, ValueId, ValueId)>,
    ) -> bool {
        let (value, from, valid) = of;
        if self.graph.constant(valid) == Some(0) || assumed.contains(&of) {
            return true;
        }
        if let Op::Field { at, bit: first, width: bits, .. } = self.graph.op(value)
            && (*at, *first, *bits) == (from, bit, width)
        {
            return true;
        }
        if assumed.len() > 64 {
            return false;
        }
        // At a join, check each incoming edge. Begin with the phis of the last block: their
        // operands may be phis of earlier blocks.
        let homes = [value, from, valid].into_iter().filter_map(|one| self.home_of_phi(one));
        let Some(block) = homes.max_by_key(|block| order.get(block)) else { return false };
        assumed.push(of);
        let by = |one: ValueId, edge: usize| match self.graph.op(one) {
            Op::Phi(all) if self.home_of_phi(one) == Some(block) => all[edge],
            _ => one,
        };
        let edges = self.graph.blocks[block.index()].predecessors.len();
        (0..edges).all(|edge| {
            let of = (by(value, edge), by(from, edge), by(valid, edge));
            self.clean_within(of, (bit, width), order, assumed)
        })
    }

    fn home_of_phi(&self, of: ValueId) -> Option<BlockId> {
        self.graph.homes.get(&of).copied()
    }
}
