//! Extern functions and methods, resolved to what the back ends implement. Each back end matches
//! these enums exhaustively.

use std::sync::Arc;

use super::program::{Extern, Program, Prototype};
use crate::model::Object;

/// An extern function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternFunction {
    /// `mark_to_drop()`
    MarkToDrop,
    /// `mark_to_pass()`
    MarkToPass,
    /// `ubpf_time_get_ns()`
    TimeGetNs,
    /// `truncate(length)`
    Truncate,
    /// `hash(result, algorithm, data)`
    Hash,
    /// `csum_replace2(sum, old, new)`: the change of one 16-bit word.
    ChecksumReplace2,
    /// `csum_replace4(sum, old, new)`: the change of two 16-bit words.
    ChecksumReplace4,
    /// The tenant VM's value with this key: `vm_info(key, value)`, or a function of the program.
    /// The only argument is the value. Returns true if the value is fresh.
    VmInfo(Arc<str>),
    /// `vm_info_age(key)`, without arguments.
    VmInfoAge(Arc<str>),
    /// A helper of the machine, by number. Its arguments and its result are numbers of at most
    /// 64 bits.
    Helper(i32),
    /// A function of this name that neither the model nor an annotation implements.
    Unimplemented(Arc<str>),
}

impl ExternFunction {
    /// Returns the model's function of this name and number of arguments. The functions of VM
    /// values are not among them: they are resolved with their key.
    pub(crate) fn of_model(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("mark_to_drop", 0) => Self::MarkToDrop,
            ("mark_to_pass", 0) => Self::MarkToPass,
            ("ubpf_time_get_ns", 0) => Self::TimeGetNs,
            ("truncate", 1) => Self::Truncate,
            ("hash", 3) => Self::Hash,
            ("csum_replace2", 3) => Self::ChecksumReplace2,
            ("csum_replace4", 3) => Self::ChecksumReplace4,
            _ => return None,
        })
    }
}

/// A method of an extern object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// `register.read(index)`
    ReadRegister,
    /// `register.write(index, value)`
    WriteRegister,
    /// `counter.count(index)`
    Count,
    /// `counter.count()` of a direct counter.
    CountDirect,
    /// `meter.execute(index)` or `meter.execute(index, color)`
    Execute,
    /// `meter.execute()` or `meter.execute(color)` of a direct meter.
    ExecuteDirect,
    /// `digest.pack(data)`
    Pack,
    /// A method that the model does not have, as `Object.method`.
    Unimplemented(Arc<str>),
}

impl Method {
    /// Resolves a method by its name and its number of parameters.
    pub(crate) fn of(object: &Extern, method: &Prototype) -> Self {
        let name = &*method.declared.name;
        match (object.object, name, method.parameters.len()) {
            (Some(Object::Register), "read", 1) => Self::ReadRegister,
            (Some(Object::Register), "write", 2) => Self::WriteRegister,
            (Some(Object::Counter), "count", 1) => Self::Count,
            (Some(Object::DirectCounter), "count", 0) => Self::CountDirect,
            (Some(Object::Meter), "execute", 1 | 2) => Self::Execute,
            (Some(Object::DirectMeter), "execute", 0 | 1) => Self::ExecuteDirect,
            (Some(Object::Digest), "pack", 1) => Self::Pack,
            _ => Self::Unimplemented(format!("{}.{name}", object.declared.name).into()),
        }
    }
}

impl Program {
    /// Resolves an extern function with this number of arguments, other than those of VM values.
    pub(crate) fn extern_function(&self, of: &Prototype, arguments: usize) -> ExternFunction {
        // The checker has reported an invalid annotation at the declaration.
        if let Ok(Some(foreign)) = self.foreign(of) {
            return foreign;
        }
        let name = &of.declared.name;
        ExternFunction::of_model(name, arguments)
            .unwrap_or_else(|| ExternFunction::Unimplemented(name.clone()))
    }
}
