//! eBPF instructions (RFC 9669).

use std::fmt;

use super::opcode::{self, class, size};

/// An instruction of 8 bytes. `lddw` takes two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Instruction {
    /// The opcode (section 3).
    pub opcode: u8,
    /// Register to write, or base register of a store.
    pub destination: u8,
    /// Register to read.
    pub source: u8,
    /// Offset of a load, a store or a jump.
    pub offset: i16,
    /// Immediate operand.
    pub immediate: i32,
}

/// Operand kind of `lddw`, in its source register (section 5.4).
pub mod wide {
    /// A 64-bit immediate.
    pub const NUMBER: u8 = 0;
    /// A map, by index.
    pub const MAP: u8 = 1;
}

/// Callee kind of a call, in its source register (section 4.3.1).
pub mod callee {
    /// A helper, by number.
    pub const HELPER: u8 = 0;
    /// A function of the object, at an offset from the next instruction.
    pub const LOCAL: u8 = 1;
}

/// The frame pointer, which is read-only.
pub const FRAME: u8 = 10;

impl Instruction {
    /// Size of an instruction in bytes.
    pub const SIZE: usize = 8;

    /// Decodes an instruction in little-endian encoding.
    pub fn decode(bytes: [u8; Self::SIZE]) -> Self {
        let [opcode, registers, o0, o1, i0, i1, i2, i3] = bytes;
        Self {
            opcode,
            destination: registers & 0xf,
            source: registers >> 4,
            offset: i16::from_le_bytes([o0, o1]),
            immediate: i32::from_le_bytes([i0, i1, i2, i3]),
        }
    }

    /// Encodes the instruction in little-endian encoding.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let [o0, o1] = self.offset.to_le_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_le_bytes();
        [self.opcode, self.source << 4 | self.destination, o0, o1, i0, i1, i2, i3]
    }

    /// Returns the class, one of [`class`].
    pub fn class(self) -> u8 {
        self.opcode & class::MASK
    }

    /// Returns the arithmetic operation ([`opcode::alu`]) or the jump condition ([`opcode::test`]).
    pub fn operation(self) -> u8 {
        self.opcode & 0xf0
    }

    /// Returns true if the second operand is a register, false if it is the immediate.
    pub fn has_register(self) -> bool {
        self.opcode & opcode::REGISTER != 0
    }

    /// Returns the number of bytes that a load or a store transfers.
    pub fn bytes(self) -> u8 {
        match self.opcode & size::MASK {
            size::BYTE => 1,
            size::HALF => 2,
            size::WORD => 4,
            _ => 8,
        }
    }

    /// Returns true if the instruction occupies two slots.
    pub fn is_wide(self) -> bool {
        self.opcode == opcode::LOAD_WIDE
    }

    /// Returns the jump distance, relative to the next instruction; None if it is not a jump.
    pub fn jump(self) -> Option<i64> {
        match (self.opcode, self.class()) {
            (opcode::CALL | opcode::EXIT, _) => None,
            (opcode::JUMP_LONG, _) => Some(i64::from(self.immediate)),
            (_, class::JMP | class::JMP32) => Some(i64::from(self.offset)),
            _ => None,
        }
    }
}

const ALU: [&str; 14] =
    ["+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "neg", "%=", "^=", "=", "s>>=", "swap"];
const COMPARE: [&str; 14] =
    ["", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<="];

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opcode, destination, source, offset, immediate } = *self;
        let operand = |narrow: &str| match self.has_register() {
            false => immediate.to_string(),
            true => format!("{narrow}{source}"),
        };
        let bits = 8 * self.bytes();
        let place = |register: u8| format!("*(u{bits} *)(r{register} {offset:+})");
        let code = usize::from(opcode >> 4);
        match self.class() {
            class::LD if self.is_wide() && source == wide::MAP => {
                write!(f, "r{destination} = map {immediate}")
            }
            class::LD if self.is_wide() => write!(f, "r{destination} = {immediate:#x} ll"),
            class::LDX => write!(f, "r{destination} = {}", place(source)),
            class::ST => write!(f, "{} = {immediate}", place(destination)),
            class::STX => write!(f, "{} = r{source}", place(destination)),
            class @ (class::ALU | class::ALU64) => {
                let register = if class == class::ALU64 { "r" } else { "w" };
                match ALU.get(code) {
                    Some(&"neg") => write!(f, "{register}{destination} = -{register}{destination}"),
                    Some(&"swap") => {
                        let order = if self.has_register() { "be" } else { "le" };
                        write!(f, "r{destination} = {order}{immediate} r{destination}")
                    }
                    Some(operator) => {
                        write!(f, "{register}{destination} {operator} {}", operand(register))
                    }
                    None => write!(f, "opcode {opcode:#04x}"),
                }
            }
            class::JMP | class::JMP32 => match opcode {
                opcode::EXIT => f.write_str("exit"),
                opcode::CALL if source == callee::LOCAL => write!(f, "call {immediate:+}"),
                opcode::CALL => write!(f, "call helper {immediate}"),
                opcode::JUMP => write!(f, "goto {offset:+}"),
                opcode::JUMP_LONG => write!(f, "goto {immediate:+}"),
                _ => {
                    let register = if self.class() == class::JMP { "r" } else { "w" };
                    let operator = COMPARE.get(code).copied().unwrap_or("?");
                    let other = operand(register);
                    write!(f, "if {register}{destination} {operator} {other} goto {offset:+}")
                }
            },
            _ => write!(f, "opcode {opcode:#04x}"),
        }
    }
}
