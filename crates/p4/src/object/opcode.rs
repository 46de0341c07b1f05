//! Opcodes (RFC 9669): the class in the lowest three bits; above them what a load or a store moves, or an
//! operation of arithmetic or a comparison, and where its second operand comes from.

/// `destination = immediate ll`: the next instruction has the upper half (section 5.4).
pub const LOAD_WIDE: u8 = size::DOUBLE | class::LD;
/// A jump to `offset`.
pub const JUMP: u8 = test::ALWAYS | class::JMP;
/// A jump to `immediate`.
pub const JUMP_LONG: u8 = test::ALWAYS | class::JMP32;
/// A call.
pub const CALL: u8 = 0x80 | class::JMP;
/// The end of a function.
pub const EXIT: u8 = 0x90 | class::JMP;

/// Set if the second operand is the source register; otherwise it is the number. Of `alu::END` it is what
/// asks for the big order.
pub const REGISTER: u8 = 0x08;
/// Set in loads and stores of plain memory (section 5.1), beside their size.
pub const MEMORY: u8 = 0x60;

/// Classes (section 3).
pub mod class {
    /// Where they stand in an opcode.
    pub const MASK: u8 = 0x07;
    /// Loads of what is in the code.
    pub const LD: u8 = 0;
    /// Loads from memory.
    pub const LDX: u8 = 1;
    /// Stores of numbers.
    pub const ST: u8 = 2;
    /// Stores of registers.
    pub const STX: u8 = 3;
    /// Arithmetic of 32 bits.
    pub const ALU: u8 = 4;
    /// Jumps, with comparisons of 64 bits.
    pub const JMP: u8 = 5;
    /// Jumps, with comparisons of 32 bits.
    pub const JMP32: u8 = 6;
    /// Arithmetic of 64 bits.
    pub const ALU64: u8 = 7;
}

/// What a load or a store moves (section 5).
pub mod size {
    /// Where it stands in an opcode.
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

/// Operations of arithmetic (section 4.1).
pub mod alu {
    /// `+`
    pub const ADD: u8 = 0x00;
    /// `-`
    pub const SUB: u8 = 0x10;
    /// `*`
    pub const MUL: u8 = 0x20;
    /// `/`, without signs
    pub const DIV: u8 = 0x30;
    /// `|`
    pub const OR: u8 = 0x40;
    /// `&`
    pub const AND: u8 = 0x50;
    /// `<<`
    pub const LSH: u8 = 0x60;
    /// `>>` with zeros
    pub const RSH: u8 = 0x70;
    /// `-`, of one operand
    pub const NEG: u8 = 0x80;
    /// `%`, without signs
    pub const MOD: u8 = 0x90;
    /// `^`
    pub const XOR: u8 = 0xa0;
    /// `=`
    pub const MOV: u8 = 0xb0;
    /// `>>` with the sign
    pub const ARSH: u8 = 0xc0;
    /// The order of bytes (section 4.2).
    pub const END: u8 = 0xd0;
}

/// Comparisons of jumps (section 4.3).
pub mod test {
    /// None.
    pub const ALWAYS: u8 = 0x00;
    /// `==`
    pub const JEQ: u8 = 0x10;
    /// `>`
    pub const JGT: u8 = 0x20;
    /// `>=`
    pub const JGE: u8 = 0x30;
    /// `&`: they have bits in common
    pub const JSET: u8 = 0x40;
    /// `!=`
    pub const JNE: u8 = 0x50;
    /// `>`, with signs
    pub const JSGT: u8 = 0x60;
    /// `>=`, with signs
    pub const JSGE: u8 = 0x70;
    /// `<`
    pub const JLT: u8 = 0xa0;
    /// `<=`
    pub const JLE: u8 = 0xb0;
    /// `<`, with signs
    pub const JSLT: u8 = 0xc0;
    /// `<=`, with signs
    pub const JSLE: u8 = 0xd0;
}
