//! Stores of outgoing headers: buffered words, then fields that may have changed.

use super::Lower;
use super::moves::{Held, Taken};
use super::parts::{Part, Piece};
use crate::flat::build::Slot;
use crate::flat::shape::{chunks, ones};
use crate::flat::{Binary, Op, ValueId};

impl Lower<'_> {
    pub(super) fn store_all(
        &mut self,
        parts: &[Part],
        taken: &[Taken],
        begin: ValueId,
        scratch: Option<Slot>,
    ) {
        for (part, taken) in parts.iter().zip(taken) {
            let needed = part.pieces.iter().any(|piece| !piece.clean) || !taken.is_empty();
            if !needed {
                continue;
            }
            let (store, after) = (self.build.new_block(), self.build.new_block());
            self.build.branch(part.valid, store, after);
            self.build.continue_in(store);
            let base = self.build.binary(Binary::Add, begin, part.to);
            if !taken.is_empty() {
                let (put, then) = (self.build.new_block(), self.build.new_block());
                self.build.branch(part.moved, put, then);
                self.build.continue_in(put);
                for (at, size, held) in taken {
                    let value = match held {
                        Held::Slot(slot) => self.build.read(*slot),
                        Held::Map(offset) => {
                            let from = self.place_of_waiting(scratch, 0);
                            let offset = *offset as i16;
                            let op = Op::Load { base: from, offset, size: *size, constant: false };
                            self.build.op(op)
                        }
                    };
                    self.store(base, *at, *size, value);
                }
                self.build.jump(then);
                self.build.continue_in(then);
            }
            self.store_changed(base, part);
            self.build.jump(after);
            self.build.continue_in(after);
        }
    }

    /// Stores the fields that may differ from the packet.
    fn store_changed(&mut self, base: ValueId, part: &Part) {
        let dirty: Vec<_> = part.pieces.iter().filter(|piece| !piece.clean).collect();
        let mut at = 0;
        while at < dirty.len() {
            // Take fields with adjacent bytes together.
            let start = at;
            let mut end = dirty[at].bit + dirty[at].width;
            while at + 1 < dirty.len() && dirty[at + 1].bit.div_ceil(8) <= end.div_ceil(8) {
                at += 1;
                end = dirty[at].bit + dirty[at].width;
            }
            let first = dirty[start].bit / 8;
            for (byte, size) in chunks(first, end.div_ceil(8) - first) {
                self.store_chunk(base, (byte, size), &dirty[start..=at]);
            }
            at += 1;
        }
    }

    /// Stores the bits of fields within a range of bytes; other bits are preserved.
    fn store_chunk(&mut self, base: ValueId, (byte, size): (u32, u8), dirty: &[&Piece]) {
        let (first, bits) = (byte * 8, u32::from(size) * 8);
        let mut whole = self.build.constant(0);
        let mut covered: u64 = 0;
        for piece in dirty {
            let (start, end) = (piece.bit, piece.bit + piece.width);
            if end <= first || start >= first + bits {
                continue;
            }
            let behind = first + bits;
            let value = if end <= behind {
                let up = behind - end;
                covered |= ones(piece.width) << up;
                self.build.by(Binary::ShiftLeft, piece.value, u64::from(up))
            } else {
                let down = end - behind;
                covered |= ones(piece.width) >> down;
                self.build.by(Binary::ShiftRight, piece.value, u64::from(down))
            };
            whole = self.build.binary(Binary::Or, whole, value);
        }
        let mask = ones(bits);
        if covered & mask != mask {
            whole = self.build.by(Binary::And, whole, covered & mask);
            let op = Op::Load { base, offset: byte as i16, size, constant: false };
            let old = self.build.op(op);
            let old = self.build.op(Op::Swap(size, old));
            let old = self.build.by(Binary::And, old, mask & !covered);
            whole = self.build.binary(Binary::Or, whole, old);
        }
        let swapped = self.build.op(Op::Swap(size, whole));
        self.store(base, byte, size, swapped);
    }
}
