//! Loads and stores, each checked against the bounds of a region.
//!
//! The region that the pointer probably refers to is checked in line. Any other address is looked
//! up in all regions, out of line.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use p4_object::opcode::class;
use p4_object::{FRAME, Instruction};

use super::regions::{memory, shared};
use super::translate::Translator;
use crate::address::{FRAME_SIZE, METADATA, METADATA_SIZE, PACKET, STACK, STACK_SIZE, values_of};
use crate::kinds::Kind;
use crate::maps::value_shift;
use crate::outcome::FaultKind;
use crate::state::{State, View};

/// A memory access.
#[derive(Clone, Copy)]
enum Access {
    Load(Type),
    Store(Type, Value),
}

impl Translator<'_, '_> {
    pub(super) fn load(&mut self, one: Instruction) {
        let access = Access::Load(of(one));
        if let Some(value) = self.access(one, one.source, access) {
            self.set(one.destination, value);
        }
    }

    pub(super) fn store(&mut self, one: Instruction) {
        let value = match one.class() {
            class::ST => self.number(i64::from(one.immediate)),
            _ => self.get(one.source),
        };
        self.access(one, one.destination, Access::Store(of(one), value));
    }

    /// Translates an access relative to a register. Returns the loaded value; `None` for a store.
    fn access(&mut self, one: Instruction, base: u8, access: Access) -> Option<Value> {
        let (offset, size) = (i64::from(one.offset), u64::from(one.bytes()));
        if base == FRAME && -(FRAME_SIZE as i64) <= offset && offset + size as i64 <= 0 {
            // r10 always points to the end of the frame.
            return self.perform(access, self.frame_place, i32::from(one.offset));
        }
        let kind = if base == FRAME { Kind::Stack } else { self.kinds[usize::from(base)] };
        let base = self.get(base);
        let address = self.builder.ins().iadd_imm_s(base, offset);
        self.checked(kind, address, size, access)
    }

    fn checked(&mut self, kind: Kind, address: Value, size: u64, access: Access) -> Option<Value> {
        let done = self.builder.create_block();
        if let Access::Load(_) = access {
            self.builder.append_block_param(done, types::I64);
        }
        let regions = match kind {
            Kind::Values(first, second) => [Some(Kind::Value(first)), Some(Kind::Value(second))],
            kind => [Some(kind), None],
        };
        let mut unexpected = None;
        for region in regions.into_iter().flatten() {
            let Some((is_within, offset)) = self.within(region, address, size) else { continue };
            let (here, elsewhere) = (self.builder.create_block(), self.builder.create_block());
            self.builder.ins().brif(is_within, here, &[], elsewhere, &[]);
            self.builder.switch_to_block(here);
            let begin = self.begin(region);
            let place = self.builder.ins().iadd(begin, offset);
            let loaded = self.perform(access, place, 0);
            self.finish(done, loaded);
            self.builder.switch_to_block(elsewhere);
            unexpected = Some(elsewhere);
        }
        if let Some(unexpected) = unexpected {
            self.builder.set_cold_block(unexpected);
        }
        let bytes = self.number(size as i64);
        self.builder.ins().call(self.resolve, &[self.state, address, bytes]);
        let place = self.field(offset_of!(State, found));
        let is_nowhere = self.builder.ins().icmp_imm_s(IntCC::Equal, place, 0);
        self.fault_if(is_nowhere, FaultKind::Bounds);
        let loaded = self.perform(access, place, 0);
        self.finish(done, loaded);
        self.builder.switch_to_block(done);
        self.builder.block_params(done).first().copied()
    }

    fn finish(&mut self, done: cranelift_codegen::ir::Block, loaded: Option<Value>) {
        match loaded {
            Some(value) => self.builder.ins().jump(done, &[value.into()]),
            None => self.builder.ins().jump(done, &[]),
        };
    }

    /// Bounds check against the region of this pointer kind: the condition and the offset in the
    /// region.
    fn within(&mut self, kind: Kind, address: Value, size: u64) -> Option<(Value, Value)> {
        let mut from = |begin: u64| self.builder.ins().iadd_imm_s(address, -(begin as i64));
        let (is_within, offset) = match kind {
            Kind::Packet => {
                let offset = from(PACKET);
                let place = offset_of!(State, limits) + 8 * size.trailing_zeros() as usize;
                let limit = self.field(place);
                (self.builder.ins().icmp(IntCC::UnsignedLessThan, offset, limit), offset)
            }
            Kind::Metadata | Kind::Stack => {
                let (begin, length) = match kind {
                    Kind::Stack => (STACK, STACK_SIZE),
                    _ => (METADATA, METADATA_SIZE),
                };
                let offset = from(begin);
                let last = (length - size) as i64;
                let compare = IntCC::UnsignedLessThanOrEqual;
                (self.builder.ins().icmp_imm_s(compare, offset, last), offset)
            }
            Kind::Value(map) => {
                let value_size = u64::from(self.unit.maps[map].value_size);
                if value_size < size {
                    return None;
                }
                let shift = value_shift(&self.unit.maps[map]);
                let offset = from(values_of(map));
                let end = i64::from(self.unit.maps[map].max_entries) << shift;
                let ins = &mut self.builder;
                let in_map = ins.ins().icmp_imm_s(IntCC::UnsignedLessThan, offset, end);
                let inside = ins.ins().band_imm_s(offset, (1 << shift) - 1);
                let last = (value_size - size) as i64;
                let in_value = ins.ins().icmp_imm_s(IntCC::UnsignedLessThanOrEqual, inside, last);
                (ins.ins().band(in_map, in_value), offset)
            }
            Kind::Values(..) | Kind::Number | Kind::Map(_) | Kind::Mixed => return None,
        };
        Some((is_within, offset))
    }

    /// Base address of a region in memory.
    fn begin(&mut self, region: Kind) -> Value {
        let state = self.state;
        let inside = |place: usize| place as i64;
        match region {
            Kind::Packet => self.field(offset_of!(State, packet)),
            Kind::Stack => self.builder.ins().iadd_imm_s(state, inside(offset_of!(State, stack))),
            Kind::Value(map) => {
                // The views do not change while a program runs.
                let fixed = shared().with_readonly().with_can_move();
                let place = offset_of!(State, views) as i32;
                let views = self.builder.ins().load(types::I64, fixed, state, place);
                let view = map * size_of::<View>() + offset_of!(View, values);
                self.builder.ins().load(types::I64, fixed, views, view as i32)
            }
            _ => self.builder.ins().iadd_imm_s(state, inside(offset_of!(State, metadata))),
        }
    }

    fn perform(&mut self, access: Access, place: Value, offset: i32) -> Option<Value> {
        let ins = self.builder.ins();
        match access {
            Access::Load(types::I64) => Some(ins.load(types::I64, memory(), place, offset)),
            Access::Load(types::I32) => Some(ins.uload32(memory(), place, offset)),
            Access::Load(types::I16) => Some(ins.uload16(types::I64, memory(), place, offset)),
            Access::Load(_) => Some(ins.uload8(types::I64, memory(), place, offset)),
            Access::Store(of, value) => {
                match of {
                    types::I64 => ins.store(memory(), value, place, offset),
                    types::I32 => ins.istore32(memory(), value, place, offset),
                    types::I16 => ins.istore16(memory(), value, place, offset),
                    _ => ins.istore8(memory(), value, place, offset),
                };
                None
            }
        }
    }

    /// Loads four bytes from a program address, for operations that are expanded in line.
    pub(super) fn load_word(&mut self, kind: Kind, address: Value) -> Value {
        match self.checked(kind, address, 4, Access::Load(types::I32)) {
            Some(value) => value,
            None => self.number(0),
        }
    }
}

fn of(one: Instruction) -> Type {
    match one.bytes() {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        _ => types::I64,
    }
}
