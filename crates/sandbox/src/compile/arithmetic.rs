//! Arithmetic and comparisons (RFC 9669, sections 4.1 to 4.3).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use p4::object::{Instruction, wide};

use super::translate::Translator;
use crate::address::handle_of;
use crate::interpret::wide_number;

impl Translator<'_, '_> {
    pub(super) fn load_wide(&mut self, one: Instruction) {
        let number = match one.source {
            wide::MAP => handle_of(one.immediate as usize),
            _ => wide_number(self.flow(), self.at),
        };
        let number = self.number(number as i64);
        self.set(one.destination, number);
    }

    /// Both operands in the width of the operation; numbers have their sign extended.
    fn operands(&mut self, one: Instruction, of: Type) -> (Value, Value) {
        let left = self.get(one.destination);
        let left = self.narrow(left, of);
        let right = if one.opcode & 8 == 0 {
            let number = i64::from(one.immediate);
            // A 32-bit number is its lower half.
            let number = if of == types::I32 { number & 0xffff_ffff } else { number };
            self.builder.ins().iconst(of, number)
        } else {
            let right = self.get(one.source);
            self.narrow(right, of)
        };
        (left, right)
    }

    fn narrow(&mut self, value: Value, of: Type) -> Value {
        if of == types::I64 { value } else { self.builder.ins().ireduce(of, value) }
    }

    fn widen(&mut self, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value) == types::I64 {
            value
        } else {
            self.builder.ins().uextend(types::I64, value)
        }
    }

    pub(super) fn arithmetic(&mut self, one: Instruction) {
        let result = match one.opcode & 0xf0 {
            0xd0 => self.byte_order(one),
            _ => {
                let of = if one.class() == 7 { types::I64 } else { types::I32 };
                let (left, right) = self.operands(one, of);
                self.operation(one.opcode & 0xf0, left, right, of)
            }
        };
        let result = self.widen(result);
        self.set(one.destination, result);
    }

    fn operation(&mut self, operation: u8, left: Value, right: Value, of: Type) -> Value {
        match operation {
            0x30 | 0x90 => return self.division(operation == 0x30, left, right, of),
            0xb0 => return right,
            _ => {}
        }
        let ins = self.builder.ins();
        match operation {
            0x00 => ins.iadd(left, right),
            0x10 => ins.isub(left, right),
            0x20 => ins.imul(left, right),
            0x40 => ins.bor(left, right),
            0x50 => ins.band(left, right),
            // Shifts take as many bits of the distance as the width has.
            0x60 => ins.ishl(left, right),
            0x70 => ins.ushr(left, right),
            0x80 => ins.ineg(left),
            0xa0 => ins.bxor(left, right),
            _ => ins.sshr(left, right),
        }
    }

    /// By zero, a quotient is 0 and a remainder what was to be divided.
    fn division(&mut self, quotient: bool, left: Value, right: Value, of: Type) -> Value {
        let ins = &mut self.builder;
        let by_zero = ins.ins().icmp_imm(IntCC::Equal, right, 0);
        let one = ins.ins().iconst(of, 1);
        let divisor = ins.ins().select(by_zero, one, right);
        if quotient {
            let found = ins.ins().udiv(left, divisor);
            let zero = ins.ins().iconst(of, 0);
            ins.ins().select(by_zero, zero, found)
        } else {
            let found = ins.ins().urem(left, divisor);
            ins.ins().select(by_zero, left, found)
        }
    }

    /// The order of bytes. This machine's is the little one, as all that there is a compiler for.
    fn byte_order(&mut self, one: Instruction) -> Value {
        let value = self.get(one.destination);
        let of = match one.immediate {
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        };
        let value = self.narrow(value, of);
        if one.opcode & 8 == 0 { value } else { self.builder.ins().bswap(value) }
    }

    pub(super) fn condition(&mut self, one: Instruction) -> Value {
        let of = if one.class() == 5 { types::I64 } else { types::I32 };
        let (left, right) = self.operands(one, of);
        let compare = match one.opcode & 0xf0 {
            0x10 => IntCC::Equal,
            0x20 => IntCC::UnsignedGreaterThan,
            0x30 => IntCC::UnsignedGreaterThanOrEqual,
            0x40 => {
                let both = self.builder.ins().band(left, right);
                return self.builder.ins().icmp_imm(IntCC::NotEqual, both, 0);
            }
            0x50 => IntCC::NotEqual,
            0x60 => IntCC::SignedGreaterThan,
            0x70 => IntCC::SignedGreaterThanOrEqual,
            0xa0 => IntCC::UnsignedLessThan,
            0xb0 => IntCC::UnsignedLessThanOrEqual,
            0xc0 => IntCC::SignedLessThan,
            _ => IntCC::SignedLessThanOrEqual,
        };
        self.builder.ins().icmp(compare, left, right)
    }
}
