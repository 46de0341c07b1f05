//! Extern functions and objects of the model (crates/p4-syntax/model/ubpf_model.p4). Counters, meters and
//! digests are in [`super::cells`].

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use p4_object::lookup3;
use p4_object::vm;

use super::{Done, Error, Run, Stop, action, field};
use crate::ir::{Callee, Expression, ExternCall, ExternFunction, Method, Type, Value};

impl Run<'_, '_> {
    pub(super) fn extern_call(&mut self, call: &ExternCall, of: &Type) -> Done<Value> {
        let arguments = &call.arguments;
        match &call.callee {
            Callee::Function(function) => self.function(function, arguments, of),
            Callee::Method(id, method) => {
                let elaborated = &self.machine.elaborated;
                let inside = elaborated.blocks[self.around].inside.get(id);
                let Some(&at) = inside.or_else(|| elaborated.top.get(id)) else {
                    return Err(Stop::Failed(Error::Internal));
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
        of: &Type,
    ) -> Done<Value> {
        match method {
            Method::ReadRegister => self.read_register(at, &arguments[0], of),
            Method::WriteRegister => self.write_register(at, &arguments[0], &arguments[1]),
            Method::Count => self.count_packet(at, Some(&arguments[0])),
            Method::CountDirect => self.count_packet(at, None),
            Method::Execute => self.execute(at, Some(&arguments[0]), arguments.get(1)),
            Method::ExecuteDirect => self.execute(at, None, arguments.first()),
            Method::Pack => self.pack(at, &arguments[0]),
            Method::Unimplemented(name) => Err(Stop::Failed(Error::Extern(name.to_string()))),
        }
    }

    fn function(
        &mut self,
        function: &ExternFunction,
        arguments: &[Expression],
        of: &Type,
    ) -> Done<Value> {
        match function {
            ExternFunction::MarkToDrop => self.mark(action::DROP),
            ExternFunction::MarkToPass => self.mark(action::PASS),
            ExternFunction::TimeGetNs => {
                let now = BigInt::from(self.machine.now);
                return Ok(crate::ir::arithmetic::wrap(now, &Type::bit(48)).into());
            }
            ExternFunction::Truncate => {
                self.truncated = Some(self.number(&arguments[0])?.to_u32().unwrap_or(u32::MAX));
            }
            ExternFunction::Hash => {
                let place = self.place(&arguments[0])?;
                let data = &arguments[2];
                let found = self.value(data)?;
                let hash = lookup3(&self.bytes(&found, &data.of));
                self.write(&place, BigInt::from(hash).into());
            }
            ExternFunction::ChecksumReplace2 => return self.replace_checksum(arguments, 1),
            ExternFunction::ChecksumReplace4 => return self.replace_checksum(arguments, 2),
            ExternFunction::VmInfo(key) => return self.vm_info(key, &arguments[0]),
            ExternFunction::VmInfoAge(key) => {
                let reading = self.machine.vm.get(&**key).copied();
                return Ok(BigInt::from(vm::get(reading, vm::part::AGE, self.machine.now)).into());
            }
            ExternFunction::Helper(number) => return self.helper(*number, arguments, of),
            ExternFunction::Library(name) | ExternFunction::Unimplemented(name) => {
                return Err(Stop::Failed(Error::Extern(name.to_string())));
            }
        }
        Ok(Value::Bool(false))
    }

    /// `csum_replace2` or `csum_replace4`, for a change of one or two 16-bit words.
    fn replace_checksum(&mut self, arguments: &[Expression], words: u32) -> Done<Value> {
        let mut word = |at: usize| {
            let value = self.number(&arguments[at])?;
            Done::Ok(value.to_u64().unwrap_or_default())
        };
        let (sum, old, new) = (word(0)?, word(1)?, word(2)?);
        Ok(BigInt::from(replaced_checksum(sum as u16, old, new, words)).into())
    }

    /// Sets the verdict, in each variable that currently holds the model's metadata.
    fn mark(&mut self, action: usize) {
        for id in &self.metadata {
            if let Value::Record { fields, .. } = &mut self.variables[id.index()] {
                fields[field::OUTPUT_ACTION] = Value::Member(action);
            }
        }
    }

    /// Encodes a value in wire format, left-padded with zeros to whole bytes.
    pub(super) fn bytes(&self, value: &Value, of: &Type) -> Vec<u8> {
        let mut packet = super::packet::Packet::new(&[]);
        packet.emit(self.program, value, of);
        packet.into_number_bytes()
    }

    // ---- registers ----

    /// Returns the elements of a register. They are initially zero.
    fn register(&mut self, at: usize) -> &mut Vec<Value> {
        let object = &self.machine.elaborated.objects[at];
        let size = usize::try_from(object.elements()).unwrap_or_default();
        let zero = match object.types.first() {
            Some(of) => self.program.initial(of),
            None => Value::Integer(BigInt::ZERO),
        };
        self.machine.objects.entry(at).or_insert_with(|| vec![zero; size])
    }

    fn read_register(&mut self, at: usize, index: &Expression, of: &Type) -> Done<Value> {
        let index = self.number(index)?.to_usize().unwrap_or(usize::MAX);
        let found = self.register(at).get(index).cloned();
        Ok(found.unwrap_or_else(|| self.program.initial(of)))
    }

    fn write_register(&mut self, at: usize, index: &Expression, value: &Expression) -> Done<Value> {
        let index = self.number(index)?.to_usize().unwrap_or(usize::MAX);
        let value = self.value(value)?;
        if let Some(place) = self.register(at).get_mut(index) {
            *place = value;
        }
        Ok(Value::Bool(false))
    }
}

/// Updates a checksum after one or two 16-bit words have changed (RFC 1624, equation 3).
fn replaced_checksum(sum: u16, old: u64, new: u64, words: u32) -> u16 {
    let mut total = u32::from(!sum);
    for at in 0..words {
        let (old, new) = ((old >> (16 * at)) as u16, (new >> (16 * at)) as u16);
        total += u32::from(!old) + u32::from(new);
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpret::number_bytes;

    #[test]
    fn checksums_follow_changes() {
        // RFC 1624, section 4: 0x5555 changes to 0x3285; the checksum was 0xdd2f.
        assert_eq!(replaced_checksum(0xdd2f, 0x5555, 0x3285, 1), 0x0000);
        let whole = |words: &[u16]| {
            let total: u32 = words.iter().map(|&word| u32::from(word)).sum();
            let folded = (total & 0xffff) + (total >> 16);
            !(((folded & 0xffff) + (folded >> 16)) as u16)
        };
        let (before, after) = ([0x4500, 0xc0a8, 0x0001], [0x4500, 0x0a00, 0x0102]);
        assert_eq!(replaced_checksum(whole(&before), 0xc0a8_0001, 0x0a00_0102, 2), whole(&after));
        assert_eq!(number_bytes(&BigInt::from(0x123), 20), [0, 1, 0x23]);
    }
}
