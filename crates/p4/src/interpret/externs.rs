//! Extern functions and objects of the model (crates/p4/model/ubpf_model.p4). Counters, meters and
//! digests are in [`super::cells`].

use num_bigint::{BigInt, Sign};
use num_traits::ToPrimitive;

use super::{Done, Error, Run, Stop, action, field};
use crate::ir::{Callee, Expression, ExternCall, Foreign, Type, Value};
use crate::object::lookup3;
use crate::vm;

impl Run<'_, '_> {
    pub(super) fn extern_call(&mut self, call: &ExternCall, of: &Type) -> Done<Value> {
        match call.callee {
            Callee::Function(id) => {
                let called = &self.program.extern_functions[id.index()];
                match self.program.foreign(called) {
                    Ok(Some(Foreign::Helper(number))) => self.helper(number, &call.arguments, of),
                    Ok(Some(Foreign::VmInfo(key))) => self.vm_info(&key, &call.arguments[0]),
                    _ => self.function(&called.declared.name.clone(), &call.arguments),
                }
            }
            Callee::Method(id, method) => {
                let made = &self.machine.made;
                let inside = made.blocks[self.around].inside.get(&id);
                let Some(&at) = inside.or_else(|| made.top.get(&id)) else {
                    return Err(Stop::Failed(Error::Internal));
                };
                let object = &self.program.externs[made.objects[at].of.index()];
                let name = object.methods[method].declared.name.clone();
                match (&*object.declared.name, &*name, &call.arguments[..]) {
                    ("Register", "read", [index]) => self.read_register(at, index, of),
                    ("Register", "write", [index, value]) => self.write_register(at, index, value),
                    ("Counter" | "DirectCounter", "count", index) => self.count_packet(at, index),
                    ("Meter" | "DirectMeter", "execute", given) => self.execute(at, given),
                    ("Digest", "pack", [data]) => self.pack(at, data),
                    (object, method, _) => {
                        Err(Stop::Failed(Error::Extern(format!("{object}.{method}"))))
                    }
                }
            }
        }
    }

    fn function(&mut self, name: &str, arguments: &[Expression]) -> Done<Value> {
        match (name, arguments) {
            ("mark_to_drop", []) => self.mark(action::DROP),
            ("mark_to_pass", []) => self.mark(action::PASS),
            ("ubpf_time_get_ns", []) => {
                let now = BigInt::from(self.machine.now);
                return Ok(crate::ir::arithmetic::wrap(now, &Type::bit(48)).into());
            }
            ("truncate", [length]) => {
                self.truncated = Some(self.number(length)?.to_u32().unwrap_or(u32::MAX));
            }
            ("hash", [result, _, data]) => {
                let place = self.place(result)?;
                let found = self.value(data)?;
                let hash = lookup3(&self.bytes(&found, &data.of));
                self.write(&place, BigInt::from(hash).into());
            }
            ("csum_replace2" | "csum_replace4", [sum, old, new]) => {
                let (sum, old, new) = (self.number(sum)?, self.number(old)?, self.number(new)?);
                let word = |value: &BigInt| value.to_u64().unwrap_or_default();
                let words = if name == "csum_replace2" { 1 } else { 2 };
                let replaced = replaced_checksum(word(&sum) as u16, word(&old), word(&new), words);
                return Ok(BigInt::from(replaced).into());
            }
            ("vm_info", [key, value]) => {
                let key = self.vm_key(key)?;
                return self.vm_info(&key, value);
            }
            ("vm_info_age", [key]) => {
                let key = self.vm_key(key)?;
                let reading = self.machine.vm.get(&*key).copied();
                return Ok(BigInt::from(vm::get(reading, vm::part::AGE, self.machine.now)).into());
            }
            _ => return Err(Stop::Failed(Error::Extern(name.to_owned()))),
        }
        Ok(Value::Bool(false))
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
        let object = &self.machine.made.objects[at];
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

/// Encodes an unsigned number in big-endian byte order.
pub(crate) fn number_bytes(value: &BigInt, bits: usize) -> Vec<u8> {
    let mut bytes = BigInt::from_biguint(Sign::Plus, value.magnitude().clone()).to_bytes_be().1;
    let wanted = bits.div_ceil(8);
    while bytes.len() < wanted {
        bytes.insert(0, 0);
    }
    bytes.split_off(bytes.len() - wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_follow_what_changes() {
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
