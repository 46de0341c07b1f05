//! Tables and value sets: map lookups (P4_16 specification, section 14.2).

use p4::ir::{ActionId, Statement, TableId, Type, ValueSetId};

use super::{Lower, Lowered, Paths};
use crate::flat::build::Slot;
use crate::flat::shape::limbs;
use crate::flat::{BlockId, Compare, Op, ValueId};
use crate::layout::{Encoding, Leaf, TableMaps, storage};

impl Lower<'_> {
    /// Applies a table. Returns 1 on a hit. If the result is `asked` for, the paths of hit and miss
    /// may stay separate.
    pub(super) fn apply_table(&mut self, id: TableId, asked: bool) -> Lowered<ValueId> {
        let hit = self.slots(1);
        let after = self.build.new_block();
        let count = self.program.tables[id.index()].actions.len();
        let split = asked && self.paths != Paths::Joined;
        self.look_up(id, hit, &vec![after; count], split)?;
        self.build.continue_in(after);
        Ok(self.build.read(hit))
    }

    /// `switch (table.apply().action_run)`
    pub(super) fn switch_action(
        &mut self,
        id: TableId,
        cases: &[(Vec<ActionId>, Vec<Statement>)],
        other: &[Statement],
    ) -> Lowered {
        let bodies: Vec<_> = cases.iter().map(|(_, body)| &body[..]).chain([other]).collect();
        let blocks: Vec<_> = bodies.iter().map(|_| self.build.new_block()).collect();
        let case_of = |action: ActionId| {
            let case = cases.iter().position(|(actions, _)| actions.contains(&action));
            blocks[case.unwrap_or(cases.len())]
        };
        let actions = &self.program.tables[id.index()].actions;
        let targets: Vec<_> = actions.iter().map(|one| case_of(one.call.action)).collect();
        let hit = self.slots(1);
        self.look_up(id, hit, &targets, false)?;
        let after = self.build.new_block();
        for (block, body) in blocks.into_iter().zip(bodies) {
            self.build.continue_in(block);
            self.all(body)?;
            self.build.jump(after);
        }
        self.build.continue_in(after);
        Ok(())
    }

    /// Looks up a key and runs the action of the entry, or the default action. After the action
    /// with index n, execution continues in `behind[n]`. With `split`, the two actions are lowered
    /// separately, so the code after them knows whether there was a hit.
    fn look_up(&mut self, id: TableId, hit: Slot, behind: &[BlockId], split: bool) -> Lowered {
        let table = &self.program.tables[id.index()];
        let Some(&at) = self.elaborated.blocks[self.around].tables.get(&id) else {
            return self.refuse(table.declared.span, "this table was not instantiated");
        };
        let maps = &self.maps.tables[at];
        let entry = self.slots(1);
        let run = self.build.new_block();
        if let Some(map) = maps.entries {
            let mut key = Vec::with_capacity(table.keys.len());
            for one in &table.keys {
                key.push(self.value(&one.expression)?);
            }
            self.build.span = table.declared.span;
            let key = self.key(maps, &key);
            let found = self.call_lookup(map, key);
            let (found_it, missed) = (self.build.new_block(), self.build.new_block());
            self.build.branch(found, found_it, missed);
            self.build.continue_in(found_it);
            self.build.write(entry, found);
            let one = self.build.constant(1);
            self.build.write(hit, one);
            if split {
                self.run_entry(id, at, entry, behind)?;
            } else {
                self.build.jump(run);
            }
            self.build.continue_in(missed);
        }
        let zero = self.build.constant(0);
        self.build.write(hit, zero);
        let Some(map) = maps.default_action else {
            let (action, arguments) = &table.default_action;
            let call = &table.actions[*action].call;
            let parameters = &self.program.actions[call.action.index()].parameters;
            let mut values = Vec::with_capacity(arguments.len());
            for (id, value) in parameters[call.arguments.len()..].iter().zip(arguments) {
                let of = self.type_of(*id);
                values.push(self.constant(value, &of));
            }
            self.run_action(call.action, &call.arguments, &values)?;
            self.build.jump(behind[*action]);
            self.build.continue_in(run);
            return if maps.entries.is_some() && !split {
                self.run_entry(id, at, entry, behind)
            } else {
                Ok(())
            };
        };
        let key = self.frame(1);
        self.store(key, 0, 4, zero);
        let found = self.call_lookup(map, key);
        self.require(found);
        self.build.write(entry, found);
        self.build.jump(run);
        self.build.continue_in(run);
        self.run_entry(id, at, entry, behind)
    }

    /// Runs the action of an entry, the address of which is in a slot.
    fn run_entry(&mut self, id: TableId, place: usize, entry: Slot, behind: &[BlockId]) -> Lowered {
        let table = &self.program.tables[id.index()];
        let maps = &self.maps.tables[place];
        let base = self.build.read(entry);
        let action = self.build.op(Op::Load { base, offset: 0, size: 4, constant: true });
        for (at, one) in table.actions.iter().enumerate() {
            let (this, next) = (self.build.new_block(), self.build.new_block());
            // A table contains no other actions, so the last one needs no test.
            if at + 1 == table.actions.len() {
                self.build.jump(this);
            } else {
                let wanted = self.build.constant(at as u64);
                let is = self.build.compare(Compare::Equal, action, wanted);
                self.build.branch(is, this, next);
            }
            self.build.continue_in(this);
            let mut values = Vec::with_capacity(maps.actions[at].len());
            let parameters = &self.program.actions[one.call.action.index()].parameters;
            let open = &parameters[one.call.arguments.len()..];
            for (leaves, id) in maps.actions[at].iter().zip(open) {
                let of = self.type_of(*id);
                values.push(self.load(base, leaves, &of, true));
            }
            let outside = self.entry.replace((place, base));
            self.run_action(one.call.action, &one.call.arguments, &values)?;
            self.entry = outside;
            self.build.jump(behind[at]);
            self.build.continue_in(next);
        }
        Ok(())
    }

    /// Builds a key in the frame and returns its address.
    fn key(&mut self, maps: &TableMaps, values: &[Vec<ValueId>]) -> ValueId {
        let words = maps.key_size.div_ceil(8);
        let key = self.frame(words);
        let mut covered = vec![false; maps.key_size as usize];
        let mut cover = |from: u32, bytes: u32| {
            covered[from as usize..(from + bytes) as usize].fill(true);
        };
        let mut bits = 0;
        for (part, value) in maps.keys.iter().zip(values) {
            let Leaf { width, offset, .. } = part.leaf;
            match maps.encoding {
                Encoding::Plain => {
                    self.store_leaf(key, &part.leaf, offset, value);
                    cover(offset, storage(width).0);
                }
                Encoding::Wire => {
                    self.store_wire(key, offset, value, width);
                    cover(offset, width.div_ceil(8));
                    bits += width.div_ceil(8) * 8;
                }
                Encoding::Words => {
                    for (at, limb) in (0..).zip(value) {
                        self.store(key, offset + at * 8, 8, *limb);
                    }
                    cover(offset, limbs(width).max(1) * 8);
                }
            }
        }
        if maps.encoding == Encoding::Wire {
            let bits = self.build.constant(u64::from(bits));
            self.store(key, 0, 4, bits);
            cover(0, 4);
        }
        self.store_gaps(key, &covered);
        key
    }

    pub(super) fn is_in_value_set(
        &mut self,
        id: ValueSetId,
        value: &[ValueId],
        of: &Type,
    ) -> Lowered<ValueId> {
        let Some(&at) = self.elaborated.blocks[self.around].value_sets.get(&id) else {
            let span = self.program.value_sets[id.index()].declared.span;
            return self.refuse(span, "this value set was not instantiated");
        };
        let words = limbs(self.width(of)).max(1);
        let key = self.frame(words);
        for (word, limb) in (0..).zip(value) {
            self.store(key, word * 8, 8, *limb);
        }
        let found = self.call_lookup(self.maps.value_sets[at], key);
        let zero = self.build.constant(0);
        Ok(self.build.compare(Compare::NotEqual, found, zero))
    }
}
