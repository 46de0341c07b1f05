//! Counters, meters and digests (crates/p4-syntax/model/kaido.p4).

use p4::ir::Expression;
use p4::model::Unit;
use p4_object::cells::Color;
use p4_object::helper;

use super::{Lower, Lowered};
use crate::flat::shape::limbs;
use crate::flat::{Binary, BlockId, Function, Op, ValueId};
use crate::layout::storage;

/// A cell: its base address and offset, and the blocks to continue in if it exists or does not.
struct CellAt {
    base: ValueId,
    offset: u32,
    there: BlockId,
    elsewhere: BlockId,
}

impl Lower<'_> {
    /// Returns the cell at an index or, without an index, that of the current table entry.
    fn cell(&mut self, at: usize, index: Option<&[ValueId]>, meters: bool) -> Lowered<CellAt> {
        let maps = self.maps;
        if let (Some(index), Some(array)) = (index, &maps.objects[at]) {
            let (base, there, elsewhere) = self.element_address(array.map, index);
            return Ok(CellAt { base, offset: 0, there, elsewhere });
        }
        let found = self.entry.and_then(|(table, base)| {
            let maps = &maps.tables[table];
            Some((base, if meters { maps.meter } else { maps.counter }?))
        });
        let Some((base, offset)) = found else {
            let span = self.build.span;
            return self.refuse(span, "this is used outside of its table's actions");
        };
        let (there, elsewhere) = (self.build.new_block(), self.build.new_block());
        self.build.jump(there);
        Ok(CellAt { base, offset, there, elsewhere })
    }

    /// `counter.count(index)`, or `count()` of a direct counter.
    pub(super) fn count_packet(&mut self, at: usize, index: Option<&Expression>) -> Lowered {
        let object = &self.elaborated.objects[at];
        let (unit, mask) = (self.program.unit(object), self.program.count_mask(object));
        let index = index.map(|index| self.value(index)).transpose()?;
        let CellAt { base, offset, there, elsewhere } = self.cell(at, index.as_deref(), false)?;
        self.build.continue_in(there);
        let one = self.build.constant(1);
        let counted = [(unit != Unit::Bytes, one), (unit != Unit::Packets, self.length)];
        for (place, (_, by)) in (0..).zip(counted).filter(|(_, (is_counted, _))| *is_counted) {
            let at = offset + place * 8;
            let load = Op::Load { base, offset: at as i16, size: 8, constant: false };
            let before = self.build.op(load);
            let sum = self.build.binary(Binary::Add, before, by);
            let sum = self.build.by(Binary::And, sum, mask);
            self.store(base, at, 8, sum);
        }
        self.build.jump(elsewhere);
        self.build.continue_in(elsewhere);
        Ok(())
    }

    /// `meter.execute(index, color)` and its variants; returns the packet's color. A direct meter
    /// has no index.
    pub(super) fn execute(
        &mut self,
        at: usize,
        index: Option<&Expression>,
        color: Option<&Expression>,
    ) -> Lowered<ValueId> {
        let object = &self.elaborated.objects[at];
        let units = match self.program.unit(object) {
            Unit::Bytes => self.length,
            _ => self.build.constant(1),
        };
        let green = self.build.constant(Color::Green as u64);
        let index = index.map(|index| self.value(index)).transpose()?;
        let before = match color {
            Some(color) => self.value(color)?[0],
            None => green,
        };
        let slot = self.slots(1);
        self.build.write(slot, before);
        let CellAt { base, offset, there, elsewhere } = self.cell(at, index.as_deref(), true)?;
        self.build.continue_in(there);
        let cell = self.build.by(Binary::Add, base, u64::from(offset));
        let found =
            self.build.op(Op::Call(Function::Helper(helper::METER), vec![cell, units, before]));
        self.build.write(slot, found);
        self.build.jump(elsewhere);
        self.build.continue_in(elsewhere);
        Ok(self.build.read(slot))
    }

    /// `digest.pack(data)`
    pub(super) fn pack(&mut self, at: usize, data: &Expression) -> Lowered {
        let maps = self.maps;
        let Some(digest) = &maps.digests[at] else {
            return self.refuse(data.span, "this is not a digest");
        };
        let value = self.value(data)?;
        let memory = self.frame(digest.size.div_ceil(8));
        let mut covered = vec![false; digest.size as usize];
        for leaf in &digest.leaves {
            let start = leaf.slot as usize;
            let count = limbs(leaf.width).max(1) as usize;
            self.store_leaf(memory, leaf, leaf.offset, &value[start..start + count]);
            let (from, size) = (leaf.offset as usize, storage(leaf.width).0 as usize);
            covered[from..from + size].fill(true);
        }
        self.store_gaps(memory, &covered);
        let id = self.build.constant(u64::from(digest.id));
        let size = self.build.constant(u64::from(digest.size));
        self.build.op(Op::Call(Function::Helper(helper::DIGEST), vec![id, memory, size]));
        Ok(())
    }
}
