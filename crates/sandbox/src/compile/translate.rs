//! Translates one function, block by block.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, FuncRef, InstBuilder, Value, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_module::Module;
use p4_object::opcode::{self, class};
use p4_object::{FRAME, Instruction};

use super::Unit;
use super::regions::shared;
use crate::address::{STACK, STACK_SIZE};
use crate::flow::{Flow, Function};
use crate::kinds::{Kind, Kinds};
use crate::outcome::FaultKind;
use crate::state::State;

pub(super) struct Translator<'t, 'p> {
    pub(super) unit: &'t mut Unit<'p>,
    pub(super) builder: FunctionBuilder<'t>,
    pub(super) function: &'t Function,
    /// Cranelift block of each basic block, by its first instruction.
    blocks: BTreeMap<usize, Block>,
    /// r0 to r9.
    registers: [Variable; 10],
    pub(super) meter: Variable,
    pub(super) state: Value,
    /// r10.
    pub(super) frame: Value,
    /// Host address of the frame's end.
    pub(super) frame_place: Value,
    /// Block that handles faults; its parameters are the kind, the instruction and the meter.
    fault: Block,
    pub(super) resolve: FuncRef,
    /// Pointer kinds of the registers at this point, as predicted.
    pub(super) kinds: [Kind; 10],
    /// Index of the instruction being translated.
    pub(super) at: usize,
}

impl<'t, 'p> Translator<'t, 'p> {
    pub(super) fn new(
        unit: &'t mut Unit<'p>,
        mut builder: FunctionBuilder<'t>,
        function: &'t Function,
    ) -> Self {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let parameters = builder.block_params(entry).to_vec();
        let (state, mut frame) = (parameters[0], parameters[1]);
        let top = STACK + STACK_SIZE;
        let is_called =
            unit.flow.functions.iter().any(|other| other.calls.contains(&function.start));
        if !is_called {
            // The entry function has no callers, so its frame is always the topmost one.
            frame = builder.ins().iconst(types::I64, top as i64);
        }
        let below = builder.ins().iadd_imm_s(frame, -(STACK as i64));
        let below = builder.ins().iadd_imm_s(below, offset_of!(State, stack) as i64);
        let frame_place = builder.ins().iadd(state, below);
        let zero = builder.ins().iconst(types::I64, 0);
        let mut define = |value: Value| {
            let variable = builder.declare_var(types::I64);
            builder.def_var(variable, value);
            variable
        };
        let registers = std::array::from_fn(|register| match register {
            1..=5 => define(parameters[1 + register]),
            _ => define(zero),
        });
        let meter = define(parameters[7]);
        let fault = builder.create_block();
        for _ in 0..3 {
            builder.append_block_param(fault, types::I64);
        }
        builder.set_cold_block(fault);
        let mut blocks = BTreeMap::new();
        for first in &function.blocks {
            blocks.insert(*first, builder.create_block());
        }
        builder.ins().jump(blocks[&function.start], &[]);
        let resolve = unit.module.declare_func_in_func(unit.resolve, builder.func);
        Self {
            unit,
            builder,
            function,
            blocks,
            registers,
            meter,
            state,
            frame,
            frame_place,
            fault,
            resolve,
            kinds: [Kind::Number; 10],
            at: function.start,
        }
    }

    pub(super) fn translate(mut self, kinds: &mut Kinds) {
        let function = self.function;
        for first in &function.blocks {
            self.builder.switch_to_block(self.blocks[first]);
            self.at = *first;
            self.pay(self.flow().lengths[*first]);
            self.kinds = kinds.start(function.start, *first);
            let flow = self.flow();
            for (at, one) in flow.instructions(*first) {
                self.at = at;
                self.instruction(one);
                kinds.step(function.start, &mut self.kinds, one);
            }
            let last = flow.last(*first);
            if let (None, [_, Some(next)]) = (flow.code[last].jump(), flow.successors(last)) {
                let next = self.blocks[&next];
                self.builder.ins().jump(next, &[]);
            }
        }
        self.faults();
        self.builder.seal_all_blocks();
        self.builder.finalize(self.unit.module.target_config());
    }

    pub(super) fn flow(&self) -> &'p Flow {
        self.unit.flow
    }

    fn instruction(&mut self, one: Instruction) {
        match one.class() {
            class::LD => self.load_wide(one),
            class::LDX => self.load(one),
            class::ST | class::STX => self.store(one),
            class::ALU | class::ALU64 => self.arithmetic(one),
            _ => match one.opcode {
                opcode::EXIT => {
                    let (answer, meter) = (self.get(0), self.builder.use_var(self.meter));
                    self.builder.ins().return_(&[answer, meter]);
                }
                opcode::CALL => self.call(one),
                _ => self.jump(one),
            },
        }
    }

    pub(super) fn get(&mut self, register: u8) -> Value {
        match register {
            FRAME => self.frame,
            register => self.builder.use_var(self.registers[usize::from(register)]),
        }
    }

    pub(super) fn set(&mut self, register: u8, value: Value) {
        self.builder.def_var(self.registers[usize::from(register)], value);
    }

    pub(super) fn number(&mut self, number: i64) -> Value {
        self.builder.ins().iconst(types::I64, number)
    }

    /// Loads a field of the state.
    pub(super) fn field(&mut self, offset: usize) -> Value {
        self.builder.ins().load(types::I64, shared(), self.state, offset as i32)
    }

    /// Deducts the length of a block from the meter.
    fn pay(&mut self, length: u32) {
        let before = self.builder.use_var(self.meter);
        let left = self.builder.ins().iadd_imm_s(before, -i64::from(length));
        let is_over = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, left, 0);
        // On failure the meter keeps its value: the block has not run.
        self.fault_if(is_over, FaultKind::Meter);
        self.builder.def_var(self.meter, left);
    }

    /// Faults if the condition holds; otherwise continues in a new block.
    pub(super) fn fault_if(&mut self, condition: Value, kind: FaultKind) {
        let (failed, next) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(condition, failed, &[], next, &[]);
        self.builder.switch_to_block(failed);
        let kind = self.number(kind as i64);
        self.fail(kind);
        self.builder.switch_to_block(next);
    }

    /// Jumps to the fault block.
    pub(super) fn fail(&mut self, kind: Value) {
        let at = self.number(self.at as i64);
        let meter = self.builder.use_var(self.meter);
        self.builder.ins().jump(self.fault, &[kind.into(), at.into(), meter.into()]);
    }

    /// Defines the fault block.
    fn faults(&mut self) {
        self.builder.switch_to_block(self.fault);
        let parameters = self.builder.block_params(self.fault).to_vec();
        for (value, place) in [
            (parameters[0], offset_of!(State, fault)),
            (parameters[1], offset_of!(State, fault_at)),
        ] {
            self.builder.ins().istore32(shared(), value, self.state, place as i32);
        }
        self.builder.ins().store(
            shared(),
            parameters[2],
            self.state,
            offset_of!(State, meter) as i32,
        );
        let (zero, negative) = (self.number(0), self.number(-1));
        self.builder.ins().return_(&[zero, negative]);
    }

    fn jump(&mut self, one: Instruction) {
        let [to, next] = self.flow().successors(self.at).map(|to| to.map(|to| self.blocks[&to]));
        let Some(to) = to else { return };
        let Some(next) = next else {
            self.builder.ins().jump(to, &[]);
            return;
        };
        let condition = self.condition(one);
        self.builder.ins().brif(condition, to, &[], next, &[]);
    }
}
