//! Generators of random programs.

use p4_object::Digest;
use p4_object::helper::{DIGEST, METER};

use super::*;

/// Boundary values for immediates.
const NUMBERS: [i32; 20] =
    [0, 1, -1, 2, 3, 7, 8, 15, 16, 24, 31, 63, 64, 255, 512, -8, -512, 4096, i32::MIN, i32::MAX];
/// Offsets at region boundaries.
const OFFSETS: [i16; 24] =
    [0, 1, 2, 4, 8, 12, 16, 20, 21, 23, 24, 30, 31, 32, 56, 57, 60, 63, 64, -1, -4, -8, -512, 512];

fn digests() -> Vec<Digest> {
    let digest = |size: u32| Digest { name: format!("of {size}"), size };
    vec![digest(8), digest(256)]
}

/// A number that is consumed in parts.
struct Bits(u64);

impl Bits {
    fn take(&mut self, below: u64) -> u64 {
        let found = self.0 % below;
        self.0 /= below;
        found
    }

    fn register(&mut self) -> u8 {
        self.take(10) as u8
    }

    fn number(&mut self) -> i32 {
        match self.take(21) {
            20 => self.take(1 << 32) as i32,
            at => NUMBERS[at as usize],
        }
    }

    fn offset(&mut self) -> i16 {
        match self.take(25) {
            24 => self.take(1 << 16) as i16,
            at => OFFSETS[at as usize],
        }
    }
}

pub(super) fn maps() -> Vec<Map> {
    vec![
        map("array", MapKind::Array, [4, 12, 3]),
        map("hash", MapKind::Hash, [8, 8, 4]),
        map("lpm", MapKind::LpmTrie, [8, 16, 4]),
        map("ternary", MapKind::Ternary, [8, 24, 4]),
    ]
}

/// Gives an arithmetic instruction a valid operand.
fn sensible(one: &mut Instruction) {
    one.offset = 0;
    let width = if one.class() == 7 { 64 } else { 32 };
    match one.opcode & 0xf0 {
        0xd0 => {
            one.opcode = 0xd4 | (one.opcode & 8);
            one.immediate = [16, 32, 64][one.immediate.rem_euclid(3) as usize];
        }
        0x80 => one.opcode &= !8,
        0x30 | 0x90 if one.immediate == 0 => one.immediate = 3,
        0x60 | 0x70 | 0xc0 => one.immediate = one.immediate.rem_euclid(width),
        _ => {}
    }
}

/// One or more instructions. Jump distances count pieces, not instructions.
fn piece(word: u64) -> Vec<Instruction> {
    let mut bits = Bits(word);
    let kind = bits.take(16);
    let (destination, source) = (bits.register(), bits.register());
    match kind {
        0..=3 => {
            let code = (bits.take(14) as u8) << 4;
            let class = [4, 7][bits.take(2) as usize];
            let from_register = 8 * bits.take(2) as u8;
            let mut one = one(code | class | from_register, destination, source, 0, bits.number());
            sensible(&mut one);
            vec![one]
        }
        4 | 5 => {
            let size = 8 * bits.take(4) as u8;
            let base = [6, 7, 8, 10, source][bits.take(5) as usize];
            let below = if base == 10 { -64 } else { 0 };
            vec![one(0x61 | size, destination, base, bits.offset().wrapping_add(below), 0)]
        }
        6 | 7 => {
            let size = 8 * bits.take(4) as u8;
            let class = 2 + bits.take(2) as u8;
            let base = [6, 7, 8, 10, destination][bits.take(5) as usize];
            let below = if base == 10 { -64 } else { 0 };
            let offset = bits.offset().wrapping_add(below);
            vec![one(0x60 | class | size, base, source, offset, bits.number())]
        }
        8 | 9 => {
            let code = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13][bits.take(11) as usize] << 4;
            let class = 5 + bits.take(2) as u8;
            let from_register = 8 * bits.take(2) as u8;
            let way = bits.take(12) as i16 - 4;
            vec![one(code | class | from_register, destination, source, way, bits.number())]
        }
        // A map helper, with key and value in the frame.
        10 | 11 => {
            let mut all = load_map(1, bits.take(4) as i32).to_vec();
            let key = -(8 * bits.take(8) as i32) - 8;
            let value = -(8 * bits.take(8) as i32) - 8;
            all.extend([copy(2, 10), one(0x07, 2, 0, 0, key)]);
            all.extend([copy(3, 10), one(0x07, 3, 0, 0, value)]);
            let number = [1, 1, 1, 2, 2, 3, 4][bits.take(7) as usize];
            all.push(helper(number));
            if number == 1 {
                all.push(copy(8, 0));
            }
            all
        }
        // Store a valid array index at a key's location, so that some lookups hit.
        12 => vec![one(0x62, 10, 0, -8 - 8 * bits.take(8) as i16, bits.take(4) as i32)],
        13 => match bits.take(9) {
            0 => vec![set(2, bits.take(40) as i32 - 20), helper(8), copy(6, 0)],
            1 => vec![set(2, bits.take(70) as i32 - 3), helper(11)],
            2 => {
                vec![copy(1, 10), one(0x07, 1, 0, 0, -16), set(2, bits.take(18) as i32), helper(6)]
            }
            3 => vec![helper([5, 7][bits.take(2) as usize])],
            // Valid and invalid keys and parts.
            4 => vec![set(1, bits.take(4) as i32), set(2, bits.take(4) as i32), helper(20)],
            // A helper with arbitrary register contents.
            5 => vec![helper([1, 2, 3, 4, 6, 8, 11, 20, METER, DIGEST][bits.take(10) as usize])],
            // A meter in the frame, in a value, or at the end of either.
            6 => {
                let (base, at) = [(10, -64), (10, -63), (8, 0), (6, 0)][bits.take(4) as usize];
                let units = set(2, bits.take(100) as i32 - 2);
                let color = set(3, bits.take(4) as i32);
                vec![copy(1, base), one(0x07, 1, 0, 0, at), units, color, helper(METER)]
            }
            7 => {
                let (id, length) = (bits.take(3) as i32, [8, 8, 256, 9][bits.take(4) as usize]);
                let from = copy(2, [10, 8, 6][bits.take(3) as usize]);
                let back = one(0x07, 2, 0, 0, -(bits.take(3) as i32 * 128));
                vec![set(1, id), from, back, set(3, length), helper(DIGEST)]
            }
            _ => vec![helper(9), copy(6, 0)],
        },
        // Spill and move pointers.
        14 => match bits.take(4) {
            0 => vec![copy(destination, [6, 7, 8, 10][bits.take(4) as usize])],
            1 => vec![one(
                0x7b,
                10,
                [6, 7, 8][bits.take(3) as usize],
                -16 - 8 * bits.take(3) as i16,
                0,
            )],
            2 => vec![one(
                0x79,
                [6, 7, 8][bits.take(3) as usize],
                10,
                -16 - 8 * bits.take(3) as i16,
                0,
            )],
            _ => vec![one(0x0f, [6, 8][bits.take(2) as usize], source, 0, 0)],
        },
        _ => match bits.take(3) {
            0 => vec![one(opcode::CALL, 0, callee::LOCAL, 0, 0)],
            1 => load_wide(destination, bits.take(1 << 16) * 0x0123_4567_89ab).to_vec(),
            _ => load_wide(destination, (bits.take(24) << 40) + bits.take(80)).to_vec(),
        },
    }
}

/// A mostly well-formed program: the first half is the main function, the second half is a function
/// that it calls. Stores all registers in the frame at the end.
pub(super) fn shaped(words: &[u64]) -> Object {
    let mut code = vec![copy(7, 2), helper(9), copy(6, 0)];
    code.extend([one(0x62, 10, 0, -4, 1), copy(2, 10), one(0x07, 2, 0, 0, -4)]);
    code.extend(load_map(1, 0));
    code.extend([helper(1), copy(8, 0), set(9, 100)]);
    let (main, called) = words.split_at(words.len() / 2);
    body(&mut code, main, &mut Vec::new());
    for register in 0..10_u8 {
        code.push(one(0x7b, 10, register, -256 - 8 * i16::from(register), 0));
    }
    code.push(EXIT);
    let start = code.len();
    let mut calls = Vec::new();
    body(&mut code, called, &mut calls);
    code.push(EXIT);
    // Calls in the second function are recursive.
    for (at, one) in code.iter_mut().enumerate() {
        if one.opcode == opcode::CALL && one.source == callee::LOCAL {
            one.immediate = start as i32 - at as i32 - 1;
        }
    }
    let mut object = object(&code, &maps());
    object.digests = digests();
    object.functions.insert(start, "called".to_owned());
    object
}

fn body(code: &mut Vec<Instruction>, words: &[u64], jumps: &mut Vec<(usize, usize)>) {
    let mut starts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        starts.push(code.len());
        let piece = piece(*word);
        if piece.len() == 1 && piece[0].jump().is_some() {
            let to = at as i64 + 1 + i64::from(piece[0].offset);
            jumps.push((code.len(), to.clamp(0, words.len() as i64) as usize));
        }
        code.extend(piece);
    }
    starts.push(code.len());
    for (at, to) in jumps.drain(..) {
        code[at].offset = (starts[to] as i64 - at as i64 - 1) as i16;
    }
}

/// Mostly valid opcodes with arbitrary operands.
pub(super) fn wild(words: &[u64]) -> Object {
    let mut code: Vec<Instruction> = Vec::new();
    let mut starts = Vec::new();
    for word in words {
        let mut bits = Bits(*word);
        let opcode = match bits.take(8) {
            0 => [opcode::LOAD_WIDE, opcode::EXIT, opcode::JUMP][bits.take(3) as usize],
            1 | 2 => 0x61 + 8 * bits.take(4) as u8 + bits.take(3) as u8,
            3 => opcode::CALL,
            _ => {
                let class = [4, 5, 6, 7, 7][bits.take(5) as usize];
                ((bits.take(14) as u8) << 4) | (8 * bits.take(2) as u8) | class
            }
        };
        let (destination, source) = (bits.take(11) as u8, bits.take(11) as u8);
        let mut new = one(opcode, destination, source, bits.offset(), bits.number());
        // A few stay unmodified; most of those are rejected.
        if bits.take(64) > 0 {
            match new.class() {
                _ if new.is_wide() => {
                    new.destination %= 10;
                    new.source %= 2;
                    new.immediate = bits.take(4) as i32;
                }
                4 | 7 => {
                    sensible(&mut new);
                    new.destination %= 10;
                }
                1 => new.destination %= 10,
                5 | 6 if opcode == opcode::CALL => {
                    new.source = bits.take(2) as u8;
                    new.immediate = [1, 2, 3, 6, 8, 9, 11, METER, DIGEST][bits.take(9) as usize];
                }
                5 | 6 if !matches!(opcode >> 4, 1..=7 | 9..=13) => new.opcode = opcode::JUMP,
                _ => {}
            }
        }
        starts.push(code.len());
        code.push(new);
        if new.is_wide() {
            code.push(one(0, 0, 0, 0, 0));
        }
    }
    starts.push(code.len());
    code.push(EXIT);
    // Make jumps and calls land on instructions.
    for at in &starts {
        let one = &mut code[*at];
        let to = starts[one.offset.unsigned_abs() as usize % starts.len()] as i64 - *at as i64 - 1;
        if one.jump().is_some() {
            one.offset = to as i16;
        } else if one.opcode == opcode::CALL && one.source == callee::LOCAL {
            one.immediate = to as i32;
        }
    }
    let mut object = object(&code, &maps());
    object.digests = digests();
    object.functions.extend((1..code.len()).map(|at| (at, "any".to_owned())));
    object
}
