//! Extern functions and objects of the model (crates/p4-syntax/model/ubpf_model.p4). Counters and meters
//! are in [`super::cells`].

use p4::ir::{Callee, Expression, ExternCall, ExternFunction, Method};
use p4::model::field;
use p4_object::action;
use p4_object::helper;
use p4_object::vm;

use super::{Lower, Lowered, NotCompiled, part};
use crate::flat::{Binary, Function, Op, ValueId};
use crate::layout::leaves;

impl Lower<'_> {
    pub(super) fn extern_call(
        &mut self,
        call: &ExternCall,
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        let arguments = &call.arguments;
        match &call.callee {
            Callee::Function(function) => self.function(function, arguments, of),
            Callee::Method(id, method) => {
                let inside = self.elaborated.blocks[self.around].inside.get(id);
                let Some(&at) = inside.or_else(|| self.elaborated.top.get(id)) else {
                    return self.refuse(of.span, "this was not instantiated");
                };
                self.method(at, method, arguments, of)
            }
        }
    }

    fn method(
        &mut self,
        at: usize,
        method: &Method,
        arguments: &[Expression],
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        match method {
            Method::ReadRegister => {
                let index = self.value(&arguments[0])?;
                return Ok(self.read_register(at, &index, &of.of));
            }
            Method::WriteRegister => {
                let index = self.value(&arguments[0])?;
                let value = self.value(&arguments[1])?;
                self.write_register(at, &index, &value);
            }
            Method::Count => self.count_packet(at, Some(&arguments[0]))?,
            Method::CountDirect => self.count_packet(at, None)?,
            Method::Execute => {
                return Ok(vec![self.execute(at, Some(&arguments[0]), arguments.get(1))?]);
            }
            Method::ExecuteDirect => {
                return Ok(vec![self.execute(at, None, arguments.first())?]);
            }
            Method::Pack => self.pack(at, &arguments[0])?,
            Method::Unimplemented(name) => {
                let what = format!("extern function `{name}` is not implemented");
                return self.refuse(of.span, what);
            }
        }
        Ok(Vec::new())
    }

    fn function(
        &mut self,
        function: &ExternFunction,
        arguments: &[Expression],
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        match function {
            ExternFunction::MarkToDrop => self.mark(action::DROP),
            ExternFunction::MarkToPass => self.mark(action::PASS),
            ExternFunction::TimeGetNs => {
                let now =
                    self.build.op(Op::Call(Function::Helper(helper::TIME_GET_NS), Vec::new()));
                return Ok(vec![self.build.low(now, 48)]);
            }
            ExternFunction::Truncate => {
                let length = self.value(&arguments[0])?;
                let slot = self.truncated;
                self.build.write(slot, length[0]);
            }
            ExternFunction::Hash => {
                let place = self.place(&arguments[0])?;
                let hash = self.hash(&arguments[2])?;
                self.write(&place, &[hash]);
            }
            ExternFunction::ChecksumReplace2 => return self.replace_checksum(arguments, 1),
            ExternFunction::ChecksumReplace4 => return self.replace_checksum(arguments, 2),
            ExternFunction::VmInfo(key) => return self.vm_info(key, &arguments[0]),
            ExternFunction::VmInfoAge(key) => {
                let key = self.key_number(key, of.span)?;
                return Ok(vec![self.get_vm_info(key, vm::part::AGE)]);
            }
            ExternFunction::Helper(number) => {
                return self.call_of_numbers(Function::Helper(*number), arguments, of);
            }
            ExternFunction::Library(name) => {
                let linked = self.build.graph.linked.iter().position(|one| *one == **name);
                if let Some(index) = linked {
                    return self.call_of_numbers(Function::Linked(index), arguments, of);
                }
                let help = "link an object that has it (`--extern FILE`), or write `@helper(number)` \
                            before its declaration";
                return Err(NotCompiled {
                    span: of.span,
                    what: format!("extern function `{name}` is not implemented"),
                    help: Some(help.to_owned()),
                });
            }
            ExternFunction::Unimplemented(name) => {
                let help = "a helper or a library's function has at most five `in` arguments, and a \
                            result, of bit<W>, int<W> or bool with at most 64 bits";
                return Err(NotCompiled {
                    span: of.span,
                    what: format!("extern function `{name}` is not implemented"),
                    help: Some(help.to_owned()),
                });
            }
        }
        Ok(Vec::new())
    }

    /// `csum_replace2` or `csum_replace4`, for a change of one or two 16-bit words.
    fn replace_checksum(&mut self, arguments: &[Expression], words: u32) -> Lowered<Vec<ValueId>> {
        let (sum, old) = (self.value(&arguments[0])?, self.value(&arguments[1])?);
        let new = self.value(&arguments[2])?;
        Ok(vec![self.replaced_checksum(sum[0], old[0], new[0], words)])
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
        let Some(leaves) = leaves(self.program, &data.of) else {
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
        let hash = self.build.op(Op::Call(Function::Helper(helper::HASH), vec![key, length]));
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
