//! Registers, stored in array maps. An index may be out of bounds.

use p4::ir::Type;

use super::Lower;
use crate::flat::shape::Slots;
use crate::flat::shape::limbs;
use crate::flat::{Binary, BlockId, ValueId};

impl Lower<'_> {
    /// Looks up an element. Returns its address, and the blocks to continue in if it exists or does
    /// not.
    pub(super) fn element_address(
        &mut self,
        map: u32,
        index: &[ValueId],
    ) -> (ValueId, BlockId, BlockId) {
        let (there, elsewhere) = (self.build.new_block(), self.build.new_block());
        let Some(lowest) = index.first().copied() else {
            self.build.jump(elsewhere);
            return (self.build.constant(0), there, elsewhere);
        };
        // An index of more than 32 bits may be out of bounds.
        let mut far = self.build.by(Binary::ShiftRight, lowest, 32);
        for upper in &index[1..] {
            far = self.build.binary(Binary::Or, far, *upper);
        }
        let near = self.build.new_block();
        self.build.branch(far, elsewhere, near);
        self.build.continue_in(near);
        let key = self.frame(1);
        self.store(key, 0, 4, lowest);
        let found = self.call_lookup(map, key);
        self.build.branch(found, there, elsewhere);
        (found, there, elsewhere)
    }

    pub(super) fn read_register(
        &mut self,
        at: usize,
        index: &[ValueId],
        of: &Type,
    ) -> Vec<ValueId> {
        let maps = self.maps;
        let Some(array) = &maps.objects[at] else { return self.initial(of) };
        let count = self.program.slots(of);
        let result = self.slots(count);
        let (base, there, elsewhere) = self.element_address(array.map, index);
        let after = self.build.new_block();
        self.build.continue_in(there);
        let value = self.load(base, &array.leaves, of, false);
        self.write_all(result, &value);
        self.build.jump(after);
        self.build.continue_in(elsewhere);
        let none = self.initial(of);
        self.write_all(result, &none);
        self.build.jump(after);
        self.build.continue_in(after);
        self.read_all(result, count)
    }

    pub(super) fn write_register(&mut self, at: usize, index: &[ValueId], value: &[ValueId]) {
        let maps = self.maps;
        let Some(array) = &maps.objects[at] else { return };
        let (base, there, after) = self.element_address(array.map, index);
        self.build.continue_in(there);
        for leaf in &array.leaves {
            let start = leaf.slot as usize;
            let count = limbs(leaf.width).max(1) as usize;
            self.store_leaf(base, leaf, leaf.offset, &value[start..start + count]);
        }
        self.build.jump(after);
        self.build.continue_in(after);
    }
}
