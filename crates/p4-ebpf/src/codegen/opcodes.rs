//! Construction of instructions.

use p4_object::Instruction;
use p4_object::opcode::{self, alu, class, size, test};

use crate::flat::{Binary, Compare, Size};

/// Returns the number as a sign-extended 32-bit immediate, if it fits.
pub(super) fn small(value: u64) -> Option<i32> {
    i32::try_from(value as i64).ok()
}

/// Returns the number as the immediate of a store of `size` bytes, which truncates it.
pub(super) fn stored(value: u64, size: Size) -> Option<i32> {
    match size {
        8 => small(value),
        _ => Some(value as u32 as i32),
    }
}

/// 64-bit move.
pub(super) const MOVE: u8 = alu::MOV | class::ALU64;
/// 32-bit move, which clears the upper half.
pub(super) const MOVE_32: u8 = alu::MOV | class::ALU;
/// Conversion to big-endian; the immediate is the width in bits.
pub(super) const TO_BIG: u8 = alu::END | opcode::REGISTER | class::ALU;

/// Returns the 64-bit opcode of an operator, without the operand source.
pub(super) fn code(operator: Binary) -> u8 {
    let operation = match operator {
        Binary::Add => alu::ADD,
        Binary::Subtract => alu::SUB,
        Binary::Multiply => alu::MUL,
        Binary::Divide => alu::DIV,
        Binary::Or => alu::OR,
        Binary::And => alu::AND,
        Binary::ShiftLeft => alu::LSH,
        Binary::ShiftRight => alu::RSH,
        Binary::Modulo => alu::MOD,
        Binary::Xor => alu::XOR,
        Binary::ShiftRightSigned => alu::ARSH,
    };
    operation | class::ALU64
}

/// Returns the opcode of the conditional jump for a comparison.
pub(super) fn test(compare: Compare) -> u8 {
    let operation = match compare {
        Compare::Equal => test::JEQ,
        Compare::NotEqual => test::JNE,
        Compare::Less => test::JLT,
        Compare::LessOrEqual => test::JLE,
        Compare::LessSigned => test::JSLT,
        Compare::LessOrEqualSigned => test::JSLE,
    };
    operation | class::JMP
}

/// Returns the opcode for a comparison with its operands exchanged.
pub(super) fn exchanged(compare: Compare) -> u8 {
    let operation = match compare {
        Compare::Equal => test::JEQ,
        Compare::NotEqual => test::JNE,
        Compare::Less => test::JGT,
        Compare::LessOrEqual => test::JGE,
        Compare::LessSigned => test::JSGT,
        Compare::LessOrEqualSigned => test::JSGE,
    };
    operation | class::JMP
}

/// Instruction without operands.
pub(super) fn instruction(opcode: u8) -> Instruction {
    Instruction { opcode, ..Instruction::default() }
}

/// Instruction with a register and an immediate.
pub(super) fn number(opcode: u8, destination: u8, immediate: i32) -> Instruction {
    Instruction { opcode, destination, immediate, ..Instruction::default() }
}

/// Instruction with two registers.
pub(super) fn two(opcode: u8, destination: u8, source: u8) -> Instruction {
    let opcode = opcode | opcode::REGISTER;
    Instruction { opcode, destination, source, ..Instruction::default() }
}

/// Load or store of `size` bytes.
pub(super) fn memory(
    class: u8,
    size: Size,
    destination: u8,
    source: u8,
    offset: i16,
) -> Instruction {
    let size = match size {
        1 => size::BYTE,
        2 => size::HALF,
        4 => size::WORD,
        _ => size::DOUBLE,
    };
    let opcode = opcode::MEMORY | size | class;
    Instruction { opcode, destination, source, offset, immediate: 0 }
}
