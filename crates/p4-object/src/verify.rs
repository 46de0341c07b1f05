//! Static verification. Maps must be valid, instructions must be supported, each jump must lead to
//! an instruction, and each call must lead to a known helper or a function. Termination and memory
//! safety are not verified: they are enforced at run time.

use std::collections::HashSet;

use super::opcode::{alu, class, size, test};
use super::{
    BadObject, Digest, FRAME, HELPERS, Instruction, MAX_DIGESTS, MAX_INSTRUCTIONS, MAX_MAPS, Map,
    Object, callee, opcode, wide,
};

/// Verifies an object.
///
/// # Errors
///
/// If the object is invalid. An error in the code names the first invalid instruction.
pub fn verify(object: &Object) -> Result<(), BadObject> {
    let code = &object.code;
    if code.is_empty() {
        return Err(BadObject::Missing("code"));
    }
    if code.len() > MAX_INSTRUCTIONS {
        let count = code.len();
        return Err(BadObject::TooMuch { what: "instructions", count, most: MAX_INSTRUCTIONS });
    }
    if object.maps.len() > MAX_MAPS {
        let count = object.maps.len();
        return Err(BadObject::TooMuch { what: "maps", count, most: MAX_MAPS });
    }
    object.maps.iter().try_for_each(Map::check)?;
    let mut names = HashSet::new();
    if let Some(double) = object.maps.iter().find(|map| !names.insert(&map.name)) {
        let why = "another map has the same name".to_owned();
        return Err(BadObject::Map { map: double.name.clone(), why });
    }
    if object.digests.len() > MAX_DIGESTS {
        let count = object.digests.len();
        return Err(BadObject::TooMuch { what: "digests", count, most: MAX_DIGESTS });
    }
    object.digests.iter().try_for_each(Digest::check)?;
    let starts = starts(code);
    if starts.get(object.entry) != Some(&true) {
        return Err(BadObject::Missing("instruction where `entry` begins"));
    }
    for (at, instruction) in code.iter().enumerate() {
        if !starts[at] {
            continue;
        }
        let next = code.get(at + 1).copied();
        if let Err(why) = check(object, at, *instruction, next, &starts) {
            let instruction = instruction.to_string();
            return Err(BadObject::Instruction { at, instruction, why: place(object, at) + &why });
        }
    }
    Ok(())
}

/// Returns a flag for each slot: true if an instruction starts there, false for the second half of
/// a `lddw`.
fn starts(code: &[Instruction]) -> Vec<bool> {
    let mut starts = vec![true; code.len()];
    let mut at = 0;
    while at < code.len() {
        let is_wide = code[at].is_wide();
        if is_wide && at + 1 < code.len() {
            starts[at + 1] = false;
        }
        at += 1 + usize::from(is_wide);
    }
    starts
}

fn check(
    object: &Object,
    at: usize,
    instruction: Instruction,
    next: Option<Instruction>,
    starts: &[bool],
) -> Result<(), String> {
    let Instruction { opcode, destination, source, immediate, .. } = instruction;
    if destination > FRAME || source > FRAME {
        return Err("there are the registers r0 to r10".to_owned());
    }
    let writes = matches!(instruction.class(), class::LD | class::LDX | class::ALU | class::ALU64);
    if writes && destination == FRAME {
        return Err("nothing writes r10, the frame pointer".to_owned());
    }
    if !is_known(instruction) {
        return Err("this instruction is not known, or not allowed".to_owned());
    }
    match opcode {
        opcode::LOAD_WIDE => {
            let upper =
                next.filter(|next| next.opcode == 0 && next.destination == 0 && next.source == 0);
            let Some(upper) = upper else { return Err("its second half is missing".to_owned()) };
            match source {
                wide::NUMBER => {}
                wide::MAP if upper.immediate == 0 && is_below(immediate, object.maps.len()) => {}
                wide::MAP => return Err("no such map".to_owned()),
                _ => return Err("it loads neither a number nor a map".to_owned()),
            }
        }
        opcode::CALL if source == callee::HELPER => {
            let is_there = HELPERS.iter().any(|(number, _)| *number == immediate);
            is_there
                .then_some(())
                .ok_or_else(|| format!("no helper {immediate}; {}", helpers()))?;
        }
        opcode::CALL if source == callee::LOCAL => {
            let to = target(at, i64::from(immediate), starts)?;
            if !object.functions.contains_key(&to) {
                return Err("it calls into the middle of a function".to_owned());
            }
        }
        opcode::CALL => return Err("it calls neither a helper nor a function".to_owned()),
        _ => {}
    }
    if let Some(way) = instruction.jump() {
        target(at, way, starts)?;
    }
    if matches!(instruction.class(), class::ALU | class::ALU64) {
        check_arithmetic(instruction)?;
    }
    let goes_on = !matches!(opcode, opcode::EXIT | opcode::JUMP | opcode::JUMP_LONG);
    if goes_on && at + 1 + usize::from(instruction.is_wide()) >= starts.len() {
        return Err("the code ends after it without `exit`".to_owned());
    }
    Ok(())
}

fn check_arithmetic(instruction: Instruction) -> Result<(), String> {
    let Instruction { immediate, offset, .. } = instruction;
    let operation = instruction.operation();
    let by_number = !instruction.has_register();
    if by_number && matches!(operation, alu::DIV | alu::MOD) && immediate == 0 {
        return Err("it divides by zero".to_owned());
    }
    let shifts = by_number && matches!(operation, alu::LSH | alu::RSH | alu::ARSH);
    let width = if instruction.class() == class::ALU64 { 64 } else { 32 };
    if shifts && !(0..width).contains(&immediate) {
        return Err(format!("it shifts by {immediate}, of {width} bits"));
    }
    if offset != 0 {
        // An offset means signed division or a sign-extending move. Neither is supported.
        return Err("arithmetic has no offset".to_owned());
    }
    if operation == alu::END && !matches!(immediate, 16 | 32 | 64) {
        return Err(format!("a byte swap is of 16, 32 or 64 bits, not {immediate}"));
    }
    Ok(())
}

/// Returns the target of a jump.
fn target(at: usize, way: i64, starts: &[bool]) -> Result<usize, String> {
    let to = usize::try_from(at as i64 + 1 + way).ok();
    match to.filter(|to| starts.get(*to) == Some(&true)) {
        Some(to) => Ok(to),
        None => Err("it leads to no instruction".to_owned()),
    }
}

/// Returns the source location of an instruction, if it is known.
fn place(object: &Object, at: usize) -> String {
    let place = object.lines.of(at).and_then(|row| {
        Some(format!("{}:{}:{}: ", object.lines.files.get(row.file)?, row.line, row.column))
    });
    place.unwrap_or_default()
}

fn is_below(number: i32, end: usize) -> bool {
    usize::try_from(number).is_ok_and(|number| number < end)
}

fn helpers() -> String {
    let all: Vec<_> = HELPERS.iter().map(|(number, name)| format!("{number} ({name})")).collect();
    format!("known are {}", all.join(", "))
}

/// Returns true for supported instructions: loads, stores, arithmetic and jumps (RFC 9669, section
/// 3). Atomic operations and the legacy packet loads are not supported.
fn is_known(one: Instruction) -> bool {
    let is_test = matches!(one.operation(), test::JEQ..=test::JSGE | test::JLT..=test::JSLE);
    match (one.class(), one.opcode) {
        (class::LD, code) => code == opcode::LOAD_WIDE,
        (class::LDX..=class::STX, code) => code & !(class::MASK | size::MASK) == opcode::MEMORY,
        // `neg` reads no register; byte swaps belong to class ALU only.
        (class::ALU | class::ALU64, _) if one.operation() == alu::NEG => !one.has_register(),
        (class::ALU, _) => one.operation() <= alu::END,
        (class::ALU64, _) => one.operation() <= alu::ARSH,
        (class::JMP, opcode::JUMP | opcode::CALL | opcode::EXIT) => true,
        (class::JMP32, opcode::JUMP_LONG) => true,
        _ => is_test,
    }
}
