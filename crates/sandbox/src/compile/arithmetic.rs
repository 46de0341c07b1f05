//! Arithmetic and comparisons (RFC 9669, sections 4.1 to 4.3).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use p4_object::opcode::{alu, class, test};
use p4_object::{Instruction, wide};

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

    /// Loads both operands in the width of the operation; immediates are sign-extended.
    fn operands(&mut self, one: Instruction, of: Type) -> (Value, Value) {
        let left = self.get(one.destination);
        let left = self.narrow(left, of);
        let right = if one.has_register() {
            let right = self.get(one.source);
            self.narrow(right, of)
        } else {
            let number = i64::from(one.immediate);
            // A 32-bit operation uses the lower half of the immediate.
            let number = if of == types::I32 { number & 0xffff_ffff } else { number };
            self.builder.ins().iconst(of, number)
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
        let result = match one.operation() {
            alu::END => self.byte_order(one),
            _ => {
                let of = if one.class() == class::ALU64 { types::I64 } else { types::I32 };
                let (left, right) = self.operands(one, of);
                self.operation(one.operation(), left, right, of)
            }
        };
        let result = self.widen(result);
        self.set(one.destination, result);
    }

    fn operation(&mut self, operation: u8, left: Value, right: Value, of: Type) -> Value {
        match operation {
            alu::DIV | alu::MOD => return self.division(operation == alu::DIV, left, right, of),
            alu::MOV => return right,
            _ => {}
        }
        let ins = self.builder.ins();
        match operation {
            alu::ADD => ins.iadd(left, right),
            alu::SUB => ins.isub(left, right),
            alu::MUL => ins.imul(left, right),
            alu::OR => ins.bor(left, right),
            alu::AND => ins.band(left, right),
            // Cranelift masks the shift distance to the operand width, as RFC 9669 requires.
            alu::LSH => ins.ishl(left, right),
            alu::RSH => ins.ushr(left, right),
            alu::NEG => ins.ineg(left),
            alu::XOR => ins.bxor(left, right),
            _ => ins.sshr(left, right),
        }
    }

    /// Unsigned division and modulo. Division by zero gives 0; modulo by zero gives the dividend.
    fn division(&mut self, quotient: bool, left: Value, right: Value, of: Type) -> Value {
        let ins = &mut self.builder;
        let by_zero = ins.ins().icmp_imm_s(IntCC::Equal, right, 0);
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

    /// Byte swaps (`alu::END`). The host is little-endian, as are all hosts that the compiler
    /// supports.
    fn byte_order(&mut self, one: Instruction) -> Value {
        let value = self.get(one.destination);
        let of = match one.immediate {
            16 => types::I16,
            32 => types::I32,
            _ => types::I64,
        };
        let value = self.narrow(value, of);
        if one.has_register() { self.builder.ins().bswap(value) } else { value }
    }

    pub(super) fn condition(&mut self, one: Instruction) -> Value {
        let of = if one.class() == class::JMP { types::I64 } else { types::I32 };
        let (left, right) = self.operands(one, of);
        let compare = match one.operation() {
            test::JEQ => IntCC::Equal,
            test::JGT => IntCC::UnsignedGreaterThan,
            test::JGE => IntCC::UnsignedGreaterThanOrEqual,
            test::JSET => {
                let both = self.builder.ins().band(left, right);
                return self.builder.ins().icmp_imm_s(IntCC::NotEqual, both, 0);
            }
            test::JNE => IntCC::NotEqual,
            test::JSGT => IntCC::SignedGreaterThan,
            test::JSGE => IntCC::SignedGreaterThanOrEqual,
            test::JLT => IntCC::UnsignedLessThan,
            test::JLE => IntCC::UnsignedLessThanOrEqual,
            test::JSLT => IntCC::SignedLessThan,
            _ => IntCC::SignedLessThanOrEqual,
        };
        self.builder.ins().icmp(compare, left, right)
    }
}
