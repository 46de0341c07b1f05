//! Compiles programs to native code.
//!
//! Each eBPF function becomes one native function, `(state, frame, r1..r5, meter) -> (r0, meter)`.
//! A negative meter on return means that a fault is recorded in the state. eBPF registers are
//! Cranelift variables, so they are allocated to machine registers; basic blocks map one to one.

mod arithmetic;
pub(crate) mod calls;
mod memory;
mod regions;
mod translate;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock};

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, InstBuilder, Signature, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use p4_object::Map;

use crate::error::LoadError;
use crate::flow::Flow;
use crate::kinds::Kinds;
use crate::state::State;
use translate::Translator;

/// Signature of a compiled function.
type Entry = unsafe extern "C" fn(*mut State, u64, u64, u64, u64, u64, u64, i64) -> Returned;

/// Return value of a compiled function, in two registers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Returned {
    answer: u64,
    meter: i64,
}

/// Native code of a program.
pub(crate) struct Native {
    entry: Entry,
    /// Owner of the code. The mutex is used only on drop.
    module: Mutex<Option<JITModule>>,
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").finish_non_exhaustive()
    }
}

/// State shared by the translation of all functions of a program.
struct Unit<'p> {
    flow: &'p Flow,
    maps: &'p [Map],
    module: JITModule,
    functions: BTreeMap<usize, FuncId>,
    /// Out-of-line address lookup that preserves all registers.
    resolve: FuncId,
}

impl Native {
    pub(crate) fn compile(flow: &Flow, maps: &[Map]) -> Result<Self, LoadError> {
        let mut module = JITModule::new(builder()?);
        let pointer = module.target_config().pointer_type();
        if pointer != types::I64 {
            return Err(LoadError::Machine("its addresses have no 64 bits".to_owned()));
        }
        let mut functions = BTreeMap::new();
        let signature = signature(&module);
        for function in &flow.functions {
            let name = format!("at_{}", function.start);
            let id = module.declare_function(&name, Linkage::Local, &signature);
            functions.insert(function.start, id.map_err(failed)?);
        }
        let resolve = module.declare_function("resolve", Linkage::Local, &resolve_signature());
        let resolve = resolve.map_err(failed)?;
        let mut unit = Unit { flow, maps, module, functions, resolve };
        let mut context = unit.module.make_context();
        let mut buffers = FunctionBuilderContext::new();
        unit.resolver(&mut context, &mut buffers)?;
        let mut kinds = Kinds::new(flow);
        for function in &flow.functions {
            context.func.signature = signature.clone();
            regions::declare(&mut context.func);
            let builder = FunctionBuilder::new(&mut context.func, &mut buffers);
            Translator::new(&mut unit, builder, function).translate(&mut kinds);
            unit.define(unit.functions[&function.start], &mut context)?;
        }
        let Unit { mut module, functions, .. } = unit;
        module.finalize_definitions().map_err(failed)?;
        let entry = module.get_finalized_function(functions[&flow.entry]);
        // SAFETY: the function was compiled with this signature and the host's calling convention.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(entry) };
        Ok(Self { entry, module: Mutex::new(Some(module)) })
    }

    /// Runs the program. A fault is recorded in the state.
    ///
    /// # Safety
    ///
    /// The state has been prepared for a packet, with the maps that the program was compiled for.
    pub(crate) unsafe fn run(&self, state: &mut State, frame: u64, arguments: [u64; 2]) -> u64 {
        let [context, metadata] = arguments;
        let meter = state.meter;
        // SAFETY: the code accesses only the state and, through it, the packet and the map values,
        // within the bounds recorded in the state.
        let Returned { answer, meter } =
            unsafe { (self.entry)(state, frame, context, metadata, 0, 0, 0, meter) };
        if state.fault == 0 {
            state.meter = meter;
        }
        answer
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let module = self.module.get_mut().map(Option::take);
        if let Ok(Some(module)) = module {
            // SAFETY: a caller that runs the code holds a reference to `self`, so no code is
            // running now.
            unsafe { module.free_memory() };
        }
    }
}

impl Unit<'_> {
    fn define(&mut self, id: FuncId, context: &mut Context) -> Result<(), LoadError> {
        self.module.define_function(id, context).map_err(failed)?;
        self.module.clear_context(context);
        Ok(())
    }

    /// Defines the lookup of addresses outside of the predicted region. It is called from cold code
    /// and preserves all registers, so that the hot path does not spill for it.
    fn resolver(
        &mut self,
        context: &mut Context,
        buffers: &mut FunctionBuilderContext,
    ) -> Result<(), LoadError> {
        context.func.signature = resolve_signature();
        regions::declare(&mut context.func);
        let mut builder = FunctionBuilder::new(&mut context.func, buffers);
        let block = builder.create_block();
        builder.append_block_params_for_function_params(block);
        builder.switch_to_block(block);
        let mut plain = resolve_signature();
        plain.call_conv = self.module.isa().default_call_conv();
        plain.returns.push(AbiParam::new(types::I64));
        let plain = builder.import_signature(plain);
        let arguments = builder.block_params(block).to_vec();
        let callee = calls::address(calls::resolve as *const () as usize);
        let callee = builder.ins().iconst(types::I64, callee);
        let call = builder.ins().call_indirect(plain, callee, &arguments);
        let found = builder.inst_results(call)[0];
        let place = std::mem::offset_of!(State, found) as i32;
        builder.ins().store(regions::shared(), found, arguments[0], place);
        builder.ins().return_(&[]);
        builder.seal_all_blocks();
        builder.finalize(self.module.target_config());
        self.define(self.resolve, context)
    }
}

/// ISA of the host, detected once.
static MACHINE: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();

fn machine() -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        // Probe each page of a frame larger than a page, so that no frame skips the guard page.
        ("probestack_strategy", "inline"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).map_err(|why| why.to_string())?;
    }
    let isa = cranelift_native::builder().map_err(str::to_owned)?;
    isa.finish(settings::Flags::new(flags)).map_err(|why| why.to_string())
}

fn builder() -> Result<JITBuilder, LoadError> {
    match MACHINE.get_or_init(machine) {
        Ok(isa) => Ok(JITBuilder::with_isa(isa.clone(), default_libcall_names())),
        Err(why) => Err(LoadError::Machine(why.clone())),
    }
}

fn signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(types::I64); 8];
    signature.returns = vec![AbiParam::new(types::I64); 2];
    signature
}

fn resolve_signature() -> Signature {
    let mut signature = Signature::new(CallConv::PreserveAll);
    signature.params = vec![AbiParam::new(types::I64); 3];
    signature
}

fn failed(why: impl fmt::Display) -> LoadError {
    LoadError::Compile(format!("{why:#}"))
}
