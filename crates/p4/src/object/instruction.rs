//! eBPF instructions (RFC 9669).

use std::fmt;

use super::opcode::{self, class, size};

/// One instruction of 8 bytes. `lddw` takes two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Instruction {
    /// What it does (section 3).
    pub opcode: u8,
    /// The register that it writes, or stores to.
    pub destination: u8,
    /// The register that it reads.
    pub source: u8,
    /// Where it loads, stores or jumps.
    pub offset: i16,
    /// A number.
    pub immediate: i32,
}

/// What a `lddw` loads, by its source register (section 5.4).
pub mod wide {
    /// The number itself.
    pub const NUMBER: u8 = 0;
    /// A map, by its place.
    pub const MAP: u8 = 1;
}

/// What a call calls, by its source register (section 4.3.1).
pub mod callee {
    /// A helper, by its number.
    pub const HELPER: u8 = 0;
    /// A function of the object, behind the next instruction.
    pub const LOCAL: u8 = 1;
}

/// The frame pointer, which nothing writes.
pub const FRAME: u8 = 10;

impl Instruction {
    /// Bytes of an instruction.
    pub const SIZE: usize = 8;

    /// Reads one, as it is in an ELF file of a little-endian machine.
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

    /// The same, back again.
    pub fn encode(self) -> [u8; Self::SIZE] {
        let [o0, o1] = self.offset.to_le_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_le_bytes();
        [self.opcode, self.source << 4 | self.destination, o0, o1, i0, i1, i2, i3]
    }

    /// Its class, one of [`class`].
    pub fn class(self) -> u8 {
        self.opcode & class::MASK
    }

    /// What arithmetic does ([`opcode::alu`]), or what a jump compares ([`opcode::test`]).
    pub fn operation(self) -> u8 {
        self.opcode & 0xf0
    }

    /// Whether its second operand is a register; otherwise it is the number.
    pub fn has_register(self) -> bool {
        self.opcode & opcode::REGISTER != 0
    }

    /// Bytes that a load or a store moves.
    pub fn bytes(self) -> u8 {
        match self.opcode & size::MASK {
            size::BYTE => 1,
            size::HALF => 2,
            size::WORD => 4,
            _ => 8,
        }
    }

    /// Whether it takes the place of two.
    pub fn is_wide(self) -> bool {
        self.opcode == opcode::LOAD_WIDE
    }

    /// How far it jumps, from the next instruction on; None if it does not.
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
