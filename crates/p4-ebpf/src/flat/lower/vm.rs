//! Values published by the tenant's VM, and helpers that are called by number.

use std::sync::Arc;

use p4::ir::{Expression, Type};
use p4_object::helper;
use p4_object::vm;
use p4_syntax::source::Span;

use super::{Lower, Lowered, NotCompiled};
use crate::flat::shape::Slots;
use crate::flat::{Compare, Function, Op, ValueId};

impl Lower<'_> {
    /// Returns the number of a key: its index in the list of keys that the program reads.
    pub(super) fn key_number(&mut self, name: &Arc<str>, span: Span) -> Lowered<u64> {
        let keys = &mut self.build.graph.keys;
        if let Some(at) = keys.iter().position(|key| key == name) {
            return Ok(at as u64);
        }
        if keys.len() == vm::MAX_KEYS {
            let most = vm::MAX_KEYS;
            let what = format!("more than {most} keys of what the VM publishes");
            let help = Some(format!("`{name}` is the first that is too many"));
            return Err(NotCompiled { span, what, help });
        }
        keys.push(name.clone());
        Ok(keys.len() as u64 - 1)
    }

    pub(super) fn get_vm_info(&mut self, key: u64, part: u64) -> ValueId {
        let arguments = vec![self.build.constant(key), self.build.constant(part)];
        self.build.op(Op::Call(Function::Helper(helper::GET_VM_INFO), arguments))
    }

    /// Writes the value of a key to a place, saturating at its maximum. Returns 1 if the value is
    /// fresh.
    pub(super) fn vm_info(&mut self, key: &Arc<str>, value: &Expression) -> Lowered<Vec<ValueId>> {
        let place = self.place(value)?;
        let key = self.key_number(key, value.span)?;
        let mut found = self.get_vm_info(key, vm::part::VALUE);
        // Published values are unsigned.
        let bits = self.width(&value.of) - u32::from(self.is_signed(&value.of));
        if bits < 64 {
            let most = self.build.constant((1 << bits) - 1);
            let fits = self.build.compare(Compare::LessOrEqual, found, most);
            found = self.build.select(fits, found, most);
        }
        let mut all = vec![found];
        let zero = self.build.constant(0);
        all.resize(self.program.slots(&value.of) as usize, zero);
        self.write(&place, &all);
        Ok(vec![self.get_vm_info(key, vm::part::FRESH)])
    }

    /// Calls a function whose arguments and result are numbers.
    pub(super) fn call_of_numbers(
        &mut self,
        function: Function,
        arguments: &[Expression],
        of: &Expression,
    ) -> Lowered<Vec<ValueId>> {
        let mut all = Vec::with_capacity(arguments.len());
        for argument in arguments {
            all.push(self.value(argument)?[0]);
        }
        let answer = self.build.op(Op::Call(function, all));
        Ok(match self.program.representation(&of.of) {
            Type::Void => Vec::new(),
            other => vec![self.build.low(answer, self.width(&other))],
        })
    }
}
