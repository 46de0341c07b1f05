//! Values from the tenant's VM, and helpers that the program calls by number.

use num_bigint::BigInt;
use p4_object::helper;
use p4_object::vm;

use super::{Done, Error, Run, Stop};
use crate::ir::arithmetic::{range, wrap};
use crate::ir::{Expression, Type, Value};

impl Run<'_, '_> {
    /// Assigns the value of a key to an l-value, saturated to its type. Returns true if the value
    /// is fresh.
    pub(super) fn vm_info(&mut self, key: &str, value: &Expression) -> Done<Value> {
        let place = self.place(value)?;
        let (reading, now) = (self.machine.vm.get(key).copied(), self.machine.now);
        let found = BigInt::from(vm::get(reading, vm::part::VALUE, now));
        let Some((_, most)) = range(&self.program.representation(&value.of)) else {
            return Err(Stop::Failed(Error::Internal));
        };
        self.write(&place, found.min(most).into());
        Ok(Value::Bool(vm::get(reading, vm::part::FRESH, now) != 0))
    }

    /// Calls a helper of the machine that takes and returns only numbers.
    pub(super) fn helper(
        &mut self,
        number: i32,
        arguments: &[Expression],
        of: &Type,
    ) -> Done<Value> {
        for argument in arguments {
            self.value(argument)?;
        }
        let answer = match number {
            helper::TIME_GET_NS => self.machine.now,
            _ => return Err(Stop::Failed(Error::Extern(format!("helper {number}")))),
        };
        Ok(match self.program.representation(of) {
            Type::Bits { .. } => wrap(answer.into(), &self.program.representation(of)).into(),
            _ => Value::Bool(answer & 1 != 0),
        })
    }
}
