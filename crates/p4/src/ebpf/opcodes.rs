//! Instructions from their parts.

use crate::flat::{Binary, Size};
use crate::object::Instruction;

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

/// An operator's instruction, without what it works on.
pub(super) fn code(operator: Binary) -> u8 {
    match operator {
        Binary::Add => 0x07,
        Binary::Subtract => 0x17,
        Binary::Multiply => 0x27,
        Binary::Divide => 0x37,
        Binary::Or => 0x47,
        Binary::And => 0x57,
        Binary::ShiftLeft => 0x67,
        Binary::ShiftRight => 0x77,
        Binary::Modulo => 0x97,
        Binary::Xor => 0xa7,
        Binary::ShiftRightSigned => 0xc7,
    }
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
    Instruction { opcode, destination, source, ..Instruction::default() }
}

/// A load or a store of so many bytes.
pub(super) fn memory(
    opcode: u8,
    size: Size,
    destination: u8,
    source: u8,
    offset: i16,
) -> Instruction {
    let width = match size {
        1 => 0x10,
        2 => 0x08,
        4 => 0x00,
        _ => 0x18,
    };
    Instruction { opcode: opcode | width, destination, source, offset, immediate: 0 }
}
