//! Instructions from their parts.

use crate::flat::{Binary, Compare, Size};
use crate::object::Instruction;
use crate::object::opcode::{self, alu, class, size, test};

/// The number as an instruction has it: 32 bits, whose sign is spread.
pub(super) fn small(value: u64) -> Option<i32> {
    i32::try_from(value as i64).ok()
}

/// The number as a store has it, which keeps the lowest bytes.
pub(super) fn stored(value: u64, size: Size) -> Option<i32> {
    match size {
        8 => small(value),
        _ => Some(value as u32 as i32),
    }
}

/// `=`, of 64 bits.
pub(super) const MOVE: u8 = alu::MOV | class::ALU64;
/// `=`, of the lowest 32 bits: above are zeros.
pub(super) const MOVE_32: u8 = alu::MOV | class::ALU;
/// The order of bytes in the network, of so many bits as the number says.
pub(super) const TO_BIG: u8 = alu::END | opcode::REGISTER | class::ALU;

/// An operator's instruction, of 64 bits, without what it works on.
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

/// The instruction that jumps if a comparison holds.
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

/// The same with its sides exchanged.
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

/// One of an opcode alone.
pub(super) fn instruction(opcode: u8) -> Instruction {
    Instruction { opcode, ..Instruction::default() }
}

/// One of a register and a number.
pub(super) fn number(opcode: u8, destination: u8, immediate: i32) -> Instruction {
    Instruction { opcode, destination, immediate, ..Instruction::default() }
}

/// One of two registers.
pub(super) fn two(opcode: u8, destination: u8, source: u8) -> Instruction {
    let opcode = opcode | opcode::REGISTER;
    Instruction { opcode, destination, source, ..Instruction::default() }
}

/// A load or a store of so many bytes.
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
