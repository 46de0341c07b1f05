//! Opcodes (RFC 9669). The lowest three bits are the class. The upper bits select the size of a
//! load or store, the arithmetic operation or the comparison, and the source of the second operand.

/// `destination = immediate ll`. The next instruction holds the upper 32 bits (section 5.4).
pub const LOAD_WIDE: u8 = size::DOUBLE | class::LD;
/// Jump to `offset`.
pub const JUMP: u8 = test::ALWAYS | class::JMP;
/// Jump to `immediate`.
pub const JUMP_LONG: u8 = test::ALWAYS | class::JMP32;
/// Function or helper call.
pub const CALL: u8 = 0x80 | class::JMP;
/// Return from a function.
pub const EXIT: u8 = 0x90 | class::JMP;

/// Set if the second operand is the source register, clear if it is the immediate. In `alu::END` it
/// selects big-endian byte order.
pub const REGISTER: u8 = 0x08;
/// Mode of regular loads and stores (section 5.1), combined with their size.
pub const MEMORY: u8 = 0x60;

/// Instruction classes (section 3).
pub mod class {
    /// Mask of the class in an opcode.
    pub const MASK: u8 = 0x07;
    /// Wide immediate loads.
    pub const LD: u8 = 0;
    /// Loads from memory.
    pub const LDX: u8 = 1;
    /// Stores of an immediate.
    pub const ST: u8 = 2;
    /// Stores of a register.
    pub const STX: u8 = 3;
    /// 32-bit arithmetic.
    pub const ALU: u8 = 4;
    /// Jumps with 64-bit comparisons.
    pub const JMP: u8 = 5;
    /// Jumps with 32-bit comparisons.
    pub const JMP32: u8 = 6;
    /// 64-bit arithmetic.
    pub const ALU64: u8 = 7;
}

/// Size of a load or a store (section 5).
pub mod size {
    /// Mask of the size in an opcode.
    pub const MASK: u8 = 0x18;
    /// 4 bytes.
    pub const WORD: u8 = 0x00;
    /// 2 bytes.
    pub const HALF: u8 = 0x08;
    /// 1 byte.
    pub const BYTE: u8 = 0x10;
    /// 8 bytes.
    pub const DOUBLE: u8 = 0x18;
}

/// Arithmetic operations (section 4.1).
pub mod alu {
    /// `+`
    pub const ADD: u8 = 0x00;
    /// `-`
    pub const SUB: u8 = 0x10;
    /// `*`
    pub const MUL: u8 = 0x20;
    /// `/`, unsigned
    pub const DIV: u8 = 0x30;
    /// `|`
    pub const OR: u8 = 0x40;
    /// `&`
    pub const AND: u8 = 0x50;
    /// `<<`
    pub const LSH: u8 = 0x60;
    /// `>>`, logical
    pub const RSH: u8 = 0x70;
    /// `-`, unary
    pub const NEG: u8 = 0x80;
    /// `%`, unsigned
    pub const MOD: u8 = 0x90;
    /// `^`
    pub const XOR: u8 = 0xa0;
    /// `=`
    pub const MOV: u8 = 0xb0;
    /// `>>`, arithmetic
    pub const ARSH: u8 = 0xc0;
    /// Byte swap (section 4.2).
    pub const END: u8 = 0xd0;
}

/// Jump conditions (section 4.3).
pub mod test {
    /// Unconditional.
    pub const ALWAYS: u8 = 0x00;
    /// `==`
    pub const JEQ: u8 = 0x10;
    /// `>`
    pub const JGT: u8 = 0x20;
    /// `>=`
    pub const JGE: u8 = 0x30;
    /// `&`: the operands have set bits in common
    pub const JSET: u8 = 0x40;
    /// `!=`
    pub const JNE: u8 = 0x50;
    /// `>`, signed
    pub const JSGT: u8 = 0x60;
    /// `>=`, signed
    pub const JSGE: u8 = 0x70;
    /// `<`
    pub const JLT: u8 = 0xa0;
    /// `<=`
    pub const JLE: u8 = 0xb0;
    /// `<`, signed
    pub const JSLT: u8 = 0xc0;
    /// `<=`, signed
    pub const JSLE: u8 = 0xd0;
}
