//! Interpreter for programs (RFC 9669): for hosts that the compiler does not support, and as the
//! reference for compiled code.

use p4_object::opcode::{self, alu, class, test};
use p4_object::{Instruction, callee, wide};

use crate::address::{FRAME_SIZE, MAX_FRAMES, STACK, handle_of};
use crate::flow::{Flow, target, width};
use crate::helpers;
use crate::outcome::FaultKind;
use crate::state::State;

/// Saved state of a caller.
#[derive(Clone, Copy, Default)]
struct Waiting {
    back: usize,
    kept: [u64; 4],
}

/// Runs a program. A fault is recorded in the state.
pub(crate) fn run(flow: &Flow, state: &mut State, frame: u64, arguments: [u64; 2]) -> u64 {
    let mut registers = [0; 11];
    registers[1..3].copy_from_slice(&arguments);
    registers[10] = frame;
    let waiting = [Waiting::default(); MAX_FRAMES as usize];
    let mut machine = Machine { flow, state, registers, at: flow.entry, waiting, depth: 0 };
    loop {
        match machine.step() {
            Ok(true) => {}
            Ok(false) => return machine.registers[0],
            Err(kind) => {
                machine.state.fault = kind as u32;
                machine.state.fault_at = machine.at as u32;
                return 0;
            }
        }
    }
}

/// Interpreter state of a running program.
struct Machine<'m> {
    flow: &'m Flow,
    state: &'m mut State,
    registers: [u64; 11],
    /// Index of the next instruction.
    at: usize,
    /// Suspended callers; the first `depth` are valid.
    waiting: [Waiting; MAX_FRAMES as usize],
    depth: usize,
}

impl Machine<'_> {
    /// Executes one instruction; false if it was the last one.
    fn step(&mut self) -> Result<bool, FaultKind> {
        let length = self.flow.lengths[self.at];
        if length > 0 {
            self.state.pay(u64::from(length))?;
        }
        let one = self.flow.code[self.at];
        let destination = usize::from(one.destination);
        let source = self.registers[usize::from(one.source)];
        let left = self.registers[destination];
        let right = if one.has_register() { source } else { one.immediate as u64 };
        let place = |base: u64| base.wrapping_add(one.offset as u64);
        let size = u64::from(one.bytes());
        match one.class() {
            class::LD => {
                self.registers[destination] = match one.source {
                    wide::MAP => handle_of(one.immediate as usize),
                    _ => wide_number(self.flow, self.at),
                };
            }
            class::LDX => self.registers[destination] = load(self.state, place(source), size)?,
            class::ST => store(self.state, place(left), size, one.immediate as u64)?,
            class::STX => store(self.state, place(left), size, source)?,
            class::ALU | class::ALU64 => {
                self.registers[destination] = arithmetic(one, left, right);
            }
            _ => return self.jump(one, left, right),
        }
        self.at += width(one);
        Ok(true)
    }

    /// Executes jumps, calls and exits; false if it was the last instruction.
    fn jump(&mut self, one: Instruction, left: u64, right: u64) -> Result<bool, FaultKind> {
        let next = self.at + width(one);
        self.at = match one.opcode {
            opcode::EXIT if self.depth == 0 => return Ok(false),
            opcode::EXIT => self.give_back(),
            opcode::CALL if one.source == callee::LOCAL => {
                self.call(next)?;
                target(self.at, i64::from(one.immediate))
            }
            opcode::CALL => {
                let mut arguments = [0; 5];
                arguments.copy_from_slice(&self.registers[1..6]);
                self.registers[0] = helpers::call(self.state, one.immediate, arguments)?;
                self.registers[1..6].fill(0);
                next
            }
            opcode::JUMP | opcode::JUMP_LONG => self.target(one),
            _ if holds(one, left, right) => self.target(one),
            _ => next,
        };
        Ok(true)
    }

    /// Target of a jump.
    fn target(&self, one: Instruction) -> usize {
        one.jump().map_or(self.at + width(one), |way| target(self.at, way))
    }

    /// Pushes a frame for a call to one of the program's functions.
    fn call(&mut self, back: usize) -> Result<(), FaultKind> {
        if self.registers[10] - FRAME_SIZE == STACK {
            return Err(FaultKind::Stack);
        }
        let mut kept = [0; 4];
        kept.copy_from_slice(&self.registers[6..10]);
        self.waiting[self.depth] = Waiting { back, kept };
        self.depth += 1;
        self.registers[0] = 0;
        self.registers[6..10].fill(0);
        self.registers[10] -= FRAME_SIZE;
        Ok(())
    }

    /// Pops a frame; returns the return address.
    fn give_back(&mut self) -> usize {
        self.depth -= 1;
        let Waiting { back, kept } = self.waiting[self.depth];
        self.registers[1..6].fill(0);
        self.registers[6..10].copy_from_slice(&kept);
        self.registers[10] += FRAME_SIZE;
        back
    }
}

/// Immediate of a 64-bit `lddw`.
pub(crate) fn wide_number(flow: &Flow, at: usize) -> u64 {
    let [low, high] = [at, at + 1].map(|at| u64::from(flow.code[at].immediate as u32));
    high << 32 | low
}

fn load(state: &mut State, address: u64, size: u64) -> Result<u64, FaultKind> {
    let from = state.reach(address, size)?;
    let mut bytes = [0; 8];
    // SAFETY: `reach` has checked that `size` bytes are accessible.
    unsafe { from.as_ptr().copy_to(bytes.as_mut_ptr(), size as usize) };
    Ok(u64::from_le_bytes(bytes))
}

fn store(state: &mut State, address: u64, size: u64, value: u64) -> Result<(), FaultKind> {
    let to = state.reach(address, size)?;
    let bytes = value.to_le_bytes();
    // SAFETY: `reach` has checked that `size` bytes are accessible.
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

/// True if a conditional jump is taken (section 4.3).
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
