//! Extern functions and objects of the model (crates/p4/model/ubpf_model.p4). Counters and meters
//! are in [`super::cells`].

use super::{Lower, Lowered, NotCompiled, part};
use crate::flat::{Binary, Op, ValueId};
use crate::ir::{Callee, Expression, ExternCall, Foreign};
use crate::model::{action, field};
use crate::object::helper;
use crate::vm;

impl Lower<'_> {
    pub(super) fn extern_call(
        &mut self,
        call: &ExternCall,
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        match call.callee {
            Callee::Function(id) => {
                let called = &self.program.extern_functions[id.index()];
                match self.program.foreign(called) {
                    Ok(Some(Foreign::Helper(number))) => self.helper(number, &call.arguments, of),
                    Ok(Some(Foreign::VmInfo(key))) => self.vm_info(&key, &call.arguments[0]),
                    _ => self.function(&called.declared.name, &call.arguments, of),
                }
            }
            Callee::Method(id, method) => {
                let inside = self.made.blocks[self.around].inside.get(&id);
                let Some(&at) = inside.or_else(|| self.made.top.get(&id)) else {
                    return self.refuse(of.span, "this was not made");
                };
                let object = &self.program.externs[self.made.objects[at].of.index()];
                let name = object.methods[method].declared.name.clone();
                match (&*object.declared.name, &*name, &call.arguments[..]) {
                    ("Register", "read", [index]) => {
                        let index = self.value(index)?;
                        Ok(self.read_register(at, &index, &of.of))
                    }
                    ("Register", "write", [index, value]) => {
                        let index = self.value(index)?;
                        let value = self.value(value)?;
                        self.write_register(at, &index, &value);
                        Ok(Vec::new())
                    }
                    ("Counter" | "DirectCounter", "count", index) => {
                        self.count_packet(at, index)?;
                        Ok(Vec::new())
                    }
                    ("Meter" | "DirectMeter", "execute", given) => {
                        Ok(vec![self.execute(at, given)?])
                    }
                    ("Digest", "pack", [data]) => {
                        self.pack(at, data)?;
                        Ok(Vec::new())
                    }
                    (object, method, _) => {
                        let what =
                            format!("`{object}.{method}` is a function that nothing here has");
                        self.refuse(of.span, what)
                    }
                }
            }
        }
    }

    fn function(
        &mut self,
        name: &str,
        arguments: &[Expression],
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        match (name, arguments) {
            ("mark_to_drop", []) => self.mark(action::DROP),
            ("mark_to_pass", []) => self.mark(action::PASS),
            ("ubpf_time_get_ns", []) => {
                let now = self.build.op(Op::Call(helper::TIME_GET_NS, Vec::new()));
                return Ok(vec![self.build.low(now, 48)]);
            }
            ("truncate", [length]) => {
                let length = self.value(length)?;
                let slot = self.truncated;
                self.build.write(slot, length[0]);
            }
            ("hash", [result, _, data]) => {
                let place = self.place(result)?;
                let hash = self.hash(data)?;
                self.write(&place, &[hash]);
            }
            ("csum_replace2" | "csum_replace4", [sum, old, new]) => {
                let (sum, old, new) = (self.value(sum)?, self.value(old)?, self.value(new)?);
                let words = if name == "csum_replace2" { 1 } else { 2 };
                return Ok(vec![self.replaced_checksum(sum[0], old[0], new[0], words)]);
            }
            ("vm_info", [key, value]) => {
                let key = self.vm_key(key)?;
                return self.vm_info(&key, value);
            }
            ("vm_info_age", [key]) => {
                let key = self.vm_key(key)?;
                let key = self.key_number(&key, of.span)?;
                return Ok(vec![self.get_vm_info(key, vm::part::AGE)]);
            }
            _ => {
                return Err(NotCompiled {
                    span: of.span,
                    what: format!("`{name}` is a function that nothing here has"),
                    help: Some(
                        "`@helper(number)` in front of its declaration says by which \
                                number a machine has it"
                            .to_owned(),
                    ),
                });
            }
        }
        Ok(Vec::new())
    }

    /// Sets the output action in all variables that currently hold the model's metadata.
    fn mark(&mut self, action: usize) {
        let action = self.build.constant(action as u64);
        for id in self.metadata.clone() {
            let slot = part(self.variable(id), field::OUTPUT_ACTION);
            self.build.write(slot, action);
        }
    }

    /// Hashes a value in network byte order, padded with leading zeros to whole bytes.
    fn hash(&mut self, data: &Expression) -> Lowered<ValueId> {
        let Some(leaves) = self.program.leaves(&data.of) else {
            return self.refuse(data.span, "a hash of this");
        };
        let value = self.value(data)?;
        let (mut all, mut width) = (Vec::new(), 0);
        for leaf in leaves {
            let start = leaf.slot as usize;
            let count = leaf.width.div_ceil(64) as usize;
            let one = value[start..start + count].to_vec();
            all = self.build.concatenated(&all, &one, (width, leaf.width));
            width += leaf.width;
        }
        let bytes = width.div_ceil(8);
        let key = self.frame(bytes.div_ceil(8).max(1));
        self.store_wire(key, 0, &all, width);
        let length = self.build.constant(u64::from(bytes));
        let hash = self.build.op(Op::Call(helper::HASH, vec![key, length]));
        Ok(self.build.low(hash, 32))
    }

    /// Updates a checksum for a change from `old` to `new` (RFC 1624, equation 3).
    fn replaced_checksum(
        &mut self,
        sum: ValueId,
        old: ValueId,
        new: ValueId,
        words: u32,
    ) -> ValueId {
        let mut total = self.build.by(Binary::Xor, sum, 0xffff);
        for word in 0..words {
            let down = u64::from(word) * 16;
            let (old, new) = (
                self.build.by(Binary::ShiftRight, old, down),
                self.build.by(Binary::ShiftRight, new, down),
            );
            let (old, new) = (self.build.low(old, 16), self.build.low(new, 16));
            let old = self.build.by(Binary::Xor, old, 0xffff);
            total = self.build.binary(Binary::Add, total, old);
            total = self.build.binary(Binary::Add, total, new);
        }
        // The sum of five words has a carry of at most 4; adding it carries at most once more.
        for _ in 0..2 {
            let low = self.build.low(total, 16);
            let carry = self.build.by(Binary::ShiftRight, total, 16);
            total = self.build.binary(Binary::Add, low, carry);
        }
        self.build.by(Binary::Xor, total, 0xffff)
    }
}
