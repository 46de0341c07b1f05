//! Tests that run programs on packets with both engines.

mod cells;
mod guarded;
mod labels;
mod opcodes;
mod p4_programs;
mod programs;
pub(crate) mod random;
mod shapes;

use std::collections::BTreeMap;

use p4_object::{ENTRY, Instruction, Map, MapKind, Object, callee, opcode, wide};

use crate::{Executor, Instance, Limits, Outcome, PacketBuffer, Program, Verdict};

pub(super) const EXIT: Instruction = one(opcode::EXIT, 0, 0, 0, 0);

pub(super) const fn one(
    opcode: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
) -> Instruction {
    Instruction { opcode, destination, source, offset, immediate }
}

/// `destination = number`
pub(super) const fn set(destination: u8, number: i32) -> Instruction {
    one(0xb7, destination, 0, 0, number)
}

/// `destination = source`
pub(super) const fn copy(destination: u8, source: u8) -> Instruction {
    one(0xbf, destination, source, 0, 0)
}

pub(super) const fn helper(number: i32) -> Instruction {
    one(opcode::CALL, 0, callee::HELPER, 0, number)
}

/// `destination = map`
pub(super) const fn load_map(destination: u8, map: i32) -> [Instruction; 2] {
    [one(opcode::LOAD_WIDE, destination, wide::MAP, 0, map), one(0, 0, 0, 0, 0)]
}

/// `destination = number ll`
pub(super) const fn load_wide(destination: u8, number: u64) -> [Instruction; 2] {
    [
        one(opcode::LOAD_WIDE, destination, wide::NUMBER, 0, number as i32),
        one(0, 0, 0, 0, (number >> 32) as i32),
    ]
}

pub(super) fn map(name: &str, kind: MapKind, sizes: [u32; 3]) -> Map {
    let [key_size, value_size, max_entries] = sizes;
    Map { name: name.to_owned(), kind, key_size, value_size, max_entries }
}

pub(super) fn object(code: &[Instruction], maps: &[Map]) -> Object {
    let functions = BTreeMap::from([(0, ENTRY.to_owned())]);
    let keys = ["net.utilisation", "app.queue"].map(str::to_owned).to_vec();
    Object { code: code.to_vec(), functions, maps: maps.to_vec(), keys, ..Object::default() }
}

/// Creates an instance of a program for each executor.
pub(super) fn both(object: &Object) -> [Instance; 2] {
    [Executor::Native, Executor::Interpreter].map(|executor| {
        let program = Program::with_executor(object, &Limits::default(), executor).unwrap();
        Instance::new(&program).unwrap()
    })
}

/// Runs a packet with 16 bytes of headroom and tailroom; returns the outcome and the resulting
/// packet. Asserts that both engines agree.
pub(super) fn run(instances: &mut [Instance; 2], packet: &[u8]) -> (Outcome, Vec<u8>) {
    let results = instances.each_mut().map(|instance| {
        let mut memory = vec![0xee; packet.len() + 32];
        memory[16..][..packet.len()].copy_from_slice(packet);
        let mut buffer = PacketBuffer::new(&mut memory, 16, packet.len()).unwrap();
        let outcome = instance.run(&mut buffer, 3);
        let bytes = buffer.bytes();
        (outcome, bytes)
    });
    assert_eq!(results[0], results[1], "native code, and the interpreter");
    let [native, _] = results;
    native
}

/// The verdict for a packet of 64 bytes.
pub(super) fn verdict(code: &[Instruction], maps: &[Map]) -> Verdict {
    run(&mut both(&object(code, maps)), &[7; 64]).0.verdict
}
