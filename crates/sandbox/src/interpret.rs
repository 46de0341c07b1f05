//! Runs programs one instruction after the other (RFC 9669): for machines that the compiler does not
//! know, and as the measure of what it makes.

use p4::object::opcode::{self, alu, class, test};
use p4::object::{Instruction, callee, wide};

use crate::address::{FRAME_SIZE, MAX_FRAMES, STACK, handle_of};
use crate::flow::{Flow, target, width};
use crate::helpers;
use crate::outcome::FaultKind;
use crate::state::State;

/// A caller that waits.
#[derive(Clone, Copy, Default)]
struct Waiting {
    back: usize,
    kept: [u64; 4],
}

/// Runs a program. A fault is in the state.
pub(crate) fn run(flow: &Flow, state: &mut State, frame: u64, arguments: [u64; 2]) -> u64 {
    let mut registers = [0; 11];
    registers[1..3].copy_from_slice(&arguments);
    registers[10] = frame;
    let mut at = flow.entry;
    match steps(flow, state, &mut registers, &mut at) {
        Ok(()) => registers[0],
        Err(kind) => {
            state.fault = kind as u32;
            state.fault_at = at as u32;
            0
        }
    }
}

fn steps(
    flow: &Flow,
    state: &mut State,
    registers: &mut [u64; 11],
    at: &mut usize,
) -> Result<(), FaultKind> {
    let mut waiting = [Waiting::default(); MAX_FRAMES as usize];
    let mut depth = 0;
    loop {
        let length = flow.lengths[*at];
        if length > 0 {
            state.pay(u64::from(length))?;
        }
        let one = flow.code[*at];
        let mut next = *at + width(one);
        let destination = usize::from(one.destination);
        let source = registers[usize::from(one.source)];
        let place = |base: u64| base.wrapping_add(one.offset as u64);
        match one.class() {
            class::LD => {
                registers[destination] = match one.source {
                    wide::MAP => handle_of(one.immediate as usize),
                    _ => wide_number(flow, *at),
                };
            }
            class::LDX => {
                registers[destination] = load(state, place(source), u64::from(one.bytes()))?
            }
            class::ST => store(
                state,
                place(registers[destination]),
                u64::from(one.bytes()),
                one.immediate as u64,
            )?,
            class::STX => {
                store(state, place(registers[destination]), u64::from(one.bytes()), source)?
            }
            class::ALU | class::ALU64 => {
                let other = if one.has_register() { source } else { one.immediate as u64 };
                registers[destination] = arithmetic(one, registers[destination], other);
            }
            _ => match one.opcode {
                opcode::EXIT if depth == 0 => return Ok(()),
                opcode::EXIT => {
                    depth -= 1;
                    let Waiting { back, kept } = waiting[depth];
                    next = back;
                    registers[1..6].fill(0);
                    registers[6..10].copy_from_slice(&kept);
                    registers[10] += FRAME_SIZE;
                }
                opcode::CALL if one.source == callee::LOCAL => {
                    if registers[10] - FRAME_SIZE == STACK {
                        return Err(FaultKind::Stack);
                    }
                    let mut kept = [0; 4];
                    kept.copy_from_slice(&registers[6..10]);
                    waiting[depth] = Waiting { back: next, kept };
                    depth += 1;
                    registers[0] = 0;
                    registers[6..10].fill(0);
                    registers[10] -= FRAME_SIZE;
                    next = target(*at, i64::from(one.immediate));
                }
                opcode::CALL => {
                    let mut arguments = [0; 5];
                    arguments.copy_from_slice(&registers[1..6]);
                    registers[0] = helpers::call(state, one.immediate, arguments)?;
                    registers[1..6].fill(0);
                }
                opcode::JUMP | opcode::JUMP_LONG => {}
                _ => {
                    let other = if one.has_register() { source } else { one.immediate as u64 };
                    if !holds(one, registers[destination], other) {
                        *at = next;
                        continue;
                    }
                }
            },
        }
        if let Some(way) = one.jump() {
            next = target(*at, way);
        }
        *at = next;
    }
}

/// What a `lddw` of a number loads.
pub(crate) fn wide_number(flow: &Flow, at: usize) -> u64 {
    let [low, high] = [at, at + 1].map(|at| u64::from(flow.code[at].immediate as u32));
    high << 32 | low
}

fn load(state: &mut State, address: u64, size: u64) -> Result<u64, FaultKind> {
    let from = state.reach(address, size)?;
    let mut bytes = [0; 8];
    // SAFETY: `reach` says that so many bytes are there.
    unsafe { from.as_ptr().copy_to(bytes.as_mut_ptr(), size as usize) };
    Ok(u64::from_le_bytes(bytes))
}

fn store(state: &mut State, address: u64, size: u64, value: u64) -> Result<(), FaultKind> {
    let to = state.reach(address, size)?;
    let bytes = value.to_le_bytes();
    // SAFETY: `reach` says that so many bytes are there.
    unsafe { to.as_ptr().copy_from(bytes.as_ptr(), size as usize) };
    Ok(())
}

/// RFC 9669, section 4.1 and 4.2.
fn arithmetic(one: Instruction, left: u64, right: u64) -> u64 {
    let operation = one.operation();
    if operation == alu::END {
        let to_big = one.has_register();
        return match (one.immediate, to_big) {
            (16, false) => u64::from(left as u16),
            (32, false) => u64::from(left as u32),
            (16, true) => u64::from((left as u16).swap_bytes()),
            (32, true) => u64::from((left as u32).swap_bytes()),
            (_, false) => left,
            (_, true) => left.swap_bytes(),
        };
    }
    if one.class() == class::ALU64 {
        return match operation {
            alu::ADD => left.wrapping_add(right),
            alu::SUB => left.wrapping_sub(right),
            alu::MUL => left.wrapping_mul(right),
            alu::DIV => left.checked_div(right).unwrap_or(0),
            alu::OR => left | right,
            alu::AND => left & right,
            alu::LSH => left << (right & 63),
            alu::RSH => left >> (right & 63),
            alu::NEG => left.wrapping_neg(),
            alu::MOD => left.checked_rem(right).unwrap_or(left),
            alu::XOR => left ^ right,
            alu::MOV => right,
            _ => (left as i64 >> (right & 63)) as u64,
        };
    }
    let (left, right) = (left as u32, right as u32);
    u64::from(match operation {
        alu::ADD => left.wrapping_add(right),
        alu::SUB => left.wrapping_sub(right),
        alu::MUL => left.wrapping_mul(right),
        alu::DIV => left.checked_div(right).unwrap_or(0),
        alu::OR => left | right,
        alu::AND => left & right,
        alu::LSH => left << (right & 31),
        alu::RSH => left >> (right & 31),
        alu::NEG => left.wrapping_neg(),
        alu::MOD => left.checked_rem(right).unwrap_or(left),
        alu::XOR => left ^ right,
        alu::MOV => right,
        _ => (left as i32 >> (right & 31)) as u32,
    })
}

/// Whether a jump is taken (section 4.3).
fn holds(one: Instruction, left: u64, right: u64) -> bool {
    let (left, right, signed) = match one.class() {
        class::JMP => (left, right, (left as i64, right as i64)),
        _ => {
            let (left, right) = (left as u32, right as u32);
            (left.into(), right.into(), (i64::from(left as i32), i64::from(right as i32)))
        }
    };
    match one.operation() {
        test::JEQ => left == right,
        test::JGT => left > right,
        test::JGE => left >= right,
        test::JSET => left & right != 0,
        test::JNE => left != right,
        test::JSGT => signed.0 > signed.1,
        test::JSGE => signed.0 >= signed.1,
        test::JLT => left < right,
        test::JLE => left <= right,
        test::JSLT => signed.0 < signed.1,
        _ => signed.0 <= signed.1,
    }
}
