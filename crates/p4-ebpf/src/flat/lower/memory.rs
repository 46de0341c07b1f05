//! Loads and stores: the stack frame and map values.

use p4::ir::Type;
use p4_object::helper;

use super::Lower;
use crate::flat::shape::{chunks, limb_bits, limbs};
use crate::flat::{Binary, Function, Op, ValueId};
use crate::layout::{Leaf, storage};

impl Lower<'_> {
    /// Reserves words of the stack frame for the arguments of the next call.
    pub(super) fn frame(&mut self, words: u32) -> ValueId {
        let most = &mut self.build.graph.frame;
        *most = (*most).max(words);
        self.build.op(Op::Frame)
    }

    pub(super) fn call_lookup(&mut self, map: u32, key: ValueId) -> ValueId {
        let map = self.build.op(Op::Map(map));
        self.build.op(Op::Call(Function::Helper(helper::MAP_LOOKUP), vec![map, key]))
    }

    pub(super) fn store(&mut self, base: ValueId, offset: u32, size: u8, value: ValueId) {
        self.build.op(Op::Store { base, offset: offset as i16, size, value });
    }

    /// Clears the padding bytes between numbers, before a call reads the memory.
    pub(super) fn store_gaps(&mut self, base: ValueId, covered: &[bool]) {
        let zero = self.build.constant(0);
        for (at, _) in (0..).zip(covered).filter(|(_, covered)| !**covered) {
            self.store(base, at, 1, zero);
        }
    }

    /// Stores a number in C layout.
    pub(super) fn store_leaf(
        &mut self,
        base: ValueId,
        leaf: &Leaf,
        offset: u32,
        value: &[ValueId],
    ) {
        if leaf.width > 64 {
            self.store_wire(base, offset, value, leaf.width);
        } else if let [value] = value {
            self.store(base, offset, storage(leaf.width).0 as u8, *value);
        }
    }

    /// Stores a number in network byte order, in whole bytes.
    pub(super) fn store_wire(&mut self, base: ValueId, offset: u32, value: &[ValueId], width: u32) {
        let mut at = offset;
        for limb in (0..limbs(width)).rev() {
            let bytes = limb_bits(width, limb).div_ceil(8);
            for (first, size) in chunks(0, bytes) {
                let behind = bytes - first - u32::from(size);
                let down = u64::from(behind * 8);
                let part = self.build.by(Binary::ShiftRight, value[limb as usize], down);
                let swapped = self.build.op(Op::Swap(size, part));
                self.store(base, at + first, size, swapped);
            }
            at += bytes;
        }
    }

    /// Loads a value of the type from memory.
    pub(super) fn load(
        &mut self,
        base: ValueId,
        leaves: &[Leaf],
        of: &Type,
        constant: bool,
    ) -> Vec<ValueId> {
        let mut all = self.initial(of);
        for leaf in leaves {
            let found = self.load_leaf(base, leaf, constant);
            let start = leaf.slot as usize;
            all[start..start + found.len()].copy_from_slice(&found);
        }
        all
    }

    fn load_leaf(&mut self, base: ValueId, leaf: &Leaf, constant: bool) -> Vec<ValueId> {
        let offset = leaf.offset as i16;
        if leaf.width <= 64 {
            let size = storage(leaf.width).0 as u8;
            return vec![self.build.op(Op::Load { base, offset, size, constant })];
        }
        let mut limbs_of = Vec::with_capacity(limbs(leaf.width) as usize);
        let mut end = leaf.offset + leaf.width.div_ceil(8);
        for limb in 0..limbs(leaf.width) {
            let bytes = limb_bits(leaf.width, limb).div_ceil(8);
            let mut value = self.build.constant(0);
            for (at, size) in chunks(end - bytes, bytes) {
                let part = self.build.op(Op::Load { base, offset: at as i16, size, constant });
                let part = self.build.op(Op::Swap(size, part));
                let up = if size == 8 {
                    value
                } else {
                    self.build.by(Binary::ShiftLeft, value, u64::from(size) * 8)
                };
                value = self.build.binary(Binary::Or, up, part);
            }
            end -= bytes;
            limbs_of.push(value);
        }
        limbs_of
    }
}
