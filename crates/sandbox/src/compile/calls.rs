//! Calls to the program's own functions and to helpers.

use std::mem::offset_of;
use std::ptr::NonNull;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, InstBuilder, InstructionData, Opcode, Signature, Value, ValueDef, types,
};
use cranelift_module::Module;
use p4_object::{Instruction, MapKind, callee, helper as number};

use super::regions::shared;
use super::translate::Translator;
use crate::address::{FRAME_SIZE, PACKET, STACK, handle_of, values_of};
use crate::flow::target;
use crate::helpers;
use crate::maps::value_shift;
use crate::outcome::FaultKind;
use crate::state::State;

/// Address of a function, as an immediate.
pub(super) fn address(function: usize) -> i64 {
    function as i64
}

#[cfg(test)]
thread_local! {
    /// Number of accesses that missed the predicted region.
    pub(crate) static UNEXPECTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Translates a program address to a pointer; null if it is outside all regions.
pub(super) unsafe extern "C" fn resolve(state: *mut State, address: u64, size: u64) -> *mut u8 {
    #[cfg(test)]
    UNEXPECTED.set(UNEXPECTED.get() + 1);
    // SAFETY: native code passes its own state, to which there is no other reference during the
    // call.
    let state = unsafe { &mut *state };
    state.resolve(address, size).map_or(std::ptr::null_mut(), NonNull::as_ptr)
}

/// Calls the helper `N`; a fault is recorded in the state.
unsafe extern "C" fn helper<const N: i32>(
    state: *mut State,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
) -> u64 {
    // SAFETY: as above.
    let state = unsafe { &mut *state };
    match helpers::call(state, N, [first, second, third, fourth, fifth]) {
        Ok(answer) => answer,
        Err(kind) => {
            state.fault = kind as u32;
            0
        }
    }
}

type Helper = unsafe extern "C" fn(*mut State, u64, u64, u64, u64, u64) -> u64;

/// Returns the entry point of a helper, by its verified number.
fn helper_of(which: i32) -> Helper {
    match which {
        number::MAP_LOOKUP => helper::<{ number::MAP_LOOKUP }>,
        number::MAP_UPDATE => helper::<{ number::MAP_UPDATE }>,
        number::MAP_DELETE => helper::<{ number::MAP_DELETE }>,
        number::MAP_ADD => helper::<{ number::MAP_ADD }>,
        number::HASH => helper::<{ number::HASH }>,
        number::PRINTF => helper::<{ number::PRINTF }>,
        number::ADJUST_HEAD => helper::<{ number::ADJUST_HEAD }>,
        number::TRUNCATE => helper::<{ number::TRUNCATE }>,
        number::GET_VM_INFO => helper::<{ number::GET_VM_INFO }>,
        number::METER => helper::<{ number::METER }>,
        number::DIGEST => helper::<{ number::DIGEST }>,
        // An unknown helper faults.
        _ => helper::<0>,
    }
}

impl Translator<'_, '_> {
    pub(super) fn call(&mut self, one: Instruction) {
        let answer = match (one.source, one.immediate) {
            (callee::LOCAL, way) => self.call_local(target(self.at, i64::from(way))),
            (_, number::PACKET_DATA) => self.number(PACKET as i64),
            (_, number::TIME_GET_NS) => self.field(offset_of!(State, now)),
            (_, number::MAP_LOOKUP) => match self.known_array() {
                Some(map) => self.array_lookup(map),
                None => self.call_helper(number::MAP_LOOKUP),
            },
            (_, other) => self.call_helper(other),
        };
        self.set(0, answer);
        let zero = self.number(0);
        for register in 1..=5 {
            self.set(register, zero);
        }
    }

    fn call_local(&mut self, to: usize) -> Value {
        let callee = self.unit.functions[&to];
        let callee = self.unit.module.declare_func_in_func(callee, self.builder.func);
        let frame = self.builder.ins().iadd_imm_s(self.frame, -(FRAME_SIZE as i64));
        let is_too_deep = self.builder.ins().icmp_imm_s(IntCC::Equal, frame, STACK as i64);
        self.fault_if(is_too_deep, FaultKind::Stack);
        let mut arguments = vec![self.state, frame];
        for register in 1..=5 {
            arguments.push(self.get(register));
        }
        arguments.push(self.builder.use_var(self.meter));
        let call = self.builder.ins().call(callee, &arguments);
        let [answer, meter] = [0, 1].map(|result| self.builder.inst_results(call)[result]);
        // A fault propagates to the caller; its recorded location does not change.
        let (failed, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(failed);
        let has_failed = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, meter, 0);
        self.builder.ins().brif(has_failed, failed, &[], next, &[]);
        self.builder.switch_to_block(failed);
        self.builder.ins().return_(&[answer, meter]);
        self.builder.switch_to_block(next);
        self.builder.def_var(self.meter, meter);
        answer
    }

    fn call_helper(&mut self, number: i32) -> Value {
        let mut signature = Signature::new(self.unit.module.isa().default_call_conv());
        signature.params = vec![AbiParam::new(types::I64); 6];
        signature.returns = vec![AbiParam::new(types::I64)];
        let signature = self.builder.import_signature(signature);
        let callee = address(helper_of(number) as *const () as usize);
        let callee = self.number(callee);
        let mut arguments = vec![self.state];
        for register in 1..=5 {
            arguments.push(self.get(register));
        }
        let meter = offset_of!(State, meter);
        let before = self.builder.use_var(self.meter);
        self.builder.ins().store(shared(), before, self.state, meter as i32);
        let call = self.builder.ins().call_indirect(signature, callee, &arguments);
        let answer = self.builder.inst_results(call)[0];
        let after = self.field(meter);
        self.builder.def_var(self.meter, after);
        let place = offset_of!(State, fault) as i32;
        let kind = self.builder.ins().uload32(shared(), self.state, place);
        let (failed, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(kind, failed, &[], next, &[]);
        self.builder.switch_to_block(failed);
        self.fail(kind);
        self.builder.switch_to_block(next);
        answer
    }

    /// Index of the array in r1, if r1 holds a constant handle at this point. Exact, not predicted.
    fn known_array(&mut self) -> Option<usize> {
        let handle = self.get(1);
        let handle = self.builder.func.dfg.resolve_aliases(handle);
        let ValueDef::Result(instruction, _) = self.builder.func.dfg.value_def(handle) else {
            return None;
        };
        let data = &self.builder.func.dfg.insts[instruction];
        let InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } = data else { return None };
        let handle = imm.bits() as u64;
        let array = |(_, map): &(usize, &p4_object::Map)| map.kind == MapKind::Array;
        let mut arrays = self.unit.maps.iter().enumerate().filter(array);
        arrays.find(|(map, _)| handle_of(*map) == handle).map(|(map, _)| map)
    }

    fn array_lookup(&mut self, map: usize) -> Value {
        let (kind, key) = (self.kinds[2], self.get(2));
        let index = self.load_word(kind, key);
        let shift = value_shift(&self.unit.maps[map]);
        let entries = i64::from(self.unit.maps[map].max_entries);
        let ins = &mut self.builder;
        let is_there = ins.ins().icmp_imm_s(IntCC::UnsignedLessThan, index, entries);
        let offset = ins.ins().ishl_imm_s(index, i64::from(shift));
        let value = ins.ins().iadd_imm_s(offset, values_of(map) as i64);
        let none = ins.ins().iconst(types::I64, 0);
        ins.ins().select(is_there, value, none)
    }
}
