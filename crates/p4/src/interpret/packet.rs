//! Input packet and output packet. Bits are in network order.

use num_bigint::{BigInt, Sign};
use num_traits::One;

use crate::ir::{Program, Type, Value, arithmetic};

/// A packet during one run of the program.
pub(super) struct Packet {
    bytes: Vec<u8>,
    /// Position of the next bit to read.
    at: usize,
    /// Bits written so far. The output is padded to whole bytes.
    out: Vec<bool>,
}

impl Packet {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0, out: Vec::new() }
    }

    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bits left to read.
    pub(super) fn left(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.at)
    }

    /// Skips this number of bits. They must exist.
    pub(super) fn advance(&mut self, bits: usize) {
        self.at += bits;
    }

    /// Reads a number of `bits` bits, starting `from` bits after the read position.
    fn number(&self, from: usize, bits: u32) -> BigInt {
        let mut value = BigInt::ZERO;
        for at in (self.at + from..).take(bits as usize) {
            let bit = self.bytes.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0);
            value = (value << 1_u32) + u32::from(bit);
        }
        value
    }

    /// Reads a value of this type, starting `from` bits after the read position, and returns it
    /// with the position after it. A varbit has `varbits` bits.
    pub(super) fn value(
        &self,
        program: &Program,
        of: &Type,
        from: usize,
        varbits: u32,
    ) -> (Value, usize) {
        match of {
            Type::Bool => (Value::Bool(self.number(from, 1).is_one()), from + 1),
            Type::Bits { width, .. } => {
                let value = arithmetic::wrap(self.number(from, *width), of);
                (value.into(), from + *width as usize)
            }
            Type::Varbit(_) => {
                let value = self.number(from, varbits);
                (Value::Varbit { bits: varbits, value }, from + varbits as usize)
            }
            Type::Enum(id) => match &program.enums[id.index()].representation {
                Some(of) => self.value(program, of, from, varbits),
                None => (program.initial(of), from),
            },
            Type::New(id) => self.value(program, &program.new_types[id.index()].of, from, varbits),
            _ => {
                let mut at = from;
                let mut fields = Vec::new();
                for of in program.parts(of) {
                    let (value, behind) = self.value(program, &of, at, varbits);
                    fields.push(value);
                    at = behind;
                }
                match of {
                    Type::Stack(..) => (Value::Stack { next: 0, elements: fields }, at),
                    _ => (Value::record(fields), at),
                }
            }
        }
    }

    /// Writes a number of this width.
    pub(super) fn write(&mut self, value: &BigInt, bits: u32) {
        self.out.extend((0..bits).rev().map(|at| value.bit(u64::from(at))));
    }

    /// Writes a value in wire format.
    pub(super) fn emit(&mut self, program: &Program, value: &Value, of: &Type) {
        match (value, of) {
            (Value::Bool(value), _) => self.out.push(*value),
            (Value::Integer(value), Type::Bits { width, .. }) => self.write(value, *width),
            (Value::Integer(_), Type::Enum(id)) => {
                if let Some(of) = &program.enums[id.index()].representation {
                    self.emit(program, value, of);
                }
            }
            (_, Type::New(id)) => self.emit(program, value, &program.new_types[id.index()].of),
            (Value::Varbit { bits, value }, _) => self.write(value, *bits),
            (Value::Record { valid: true, fields } | Value::Stack { elements: fields, .. }, _) => {
                for (value, of) in fields.iter().zip(program.parts(of)) {
                    self.emit(program, value, &of);
                }
            }
            _ => {}
        }
    }

    /// Returns the written bits as one number, left-padded to whole bytes.
    pub(super) fn into_number_bytes(self) -> Vec<u8> {
        let bits = self.out.len();
        let number =
            self.out.into_iter().fold(BigInt::ZERO, |all, bit| (all << 1_u32) + u32::from(bit));
        number_bytes(&number, bits)
    }

    /// Returns the input packet.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the output packet: the bits written, then the unparsed payload.
    pub(super) fn finish(self, truncated: Option<u32>) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at) == Some(&true)))
        };
        let mut out: Vec<u8> = self.out.chunks(8).map(byte).collect();
        out.extend_from_slice(&self.bytes[self.at.div_ceil(8).min(self.bytes.len())..]);
        if let Some(most) = truncated {
            out.truncate(most as usize);
        }
        out
    }
}

/// Encodes an unsigned number in big-endian byte order.
pub fn number_bytes(value: &BigInt, bits: usize) -> Vec<u8> {
    let mut bytes = BigInt::from_biguint(Sign::Plus, value.magnitude().clone()).to_bytes_be().1;
    let wanted = bits.div_ceil(8);
    while bytes.len() < wanted {
        bytes.insert(0, 0);
    }
    bytes.split_off(bytes.len() - wanted)
}
