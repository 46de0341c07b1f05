//! Resolves extern functions and methods: to the model's, to a helper of the machine, to a value of
//! the tenant's VM, or to a function of a library.

use super::foreign::{foreign, takes_numbers};
use crate::ir::{Extern, ExternFunction, Method, Program, Prototype};
use crate::model::Object;

/// Resolves an extern function with this number of arguments, other than those of VM values.
pub(super) fn function(program: &Program, of: &Prototype, arguments: usize) -> ExternFunction {
    // An invalid annotation is reported at the declaration.
    if let Ok(Some(foreign)) = foreign(program, of) {
        return foreign;
    }
    use ExternFunction as F;
    let name = &of.declared.name;
    match (&**name, arguments) {
        ("mark_to_drop", 0) => F::MarkToDrop,
        ("mark_to_pass", 0) => F::MarkToPass,
        ("ubpf_time_get_ns", 0) => F::TimeGetNs,
        ("truncate", 1) => F::Truncate,
        ("hash", 3) => F::Hash,
        ("csum_replace2", 3) => F::ChecksumReplace2,
        ("csum_replace4", 3) => F::ChecksumReplace4,
        _ if takes_numbers(program, of) => F::Library(name.clone()),
        _ => F::Unimplemented(name.clone()),
    }
}

/// Resolves a method by its name and its number of parameters.
pub(super) fn method(object: &Extern, method: &Prototype) -> Method {
    let name = &*method.declared.name;
    match (object.object, name, method.parameters.len()) {
        (Some(Object::Register), "read", 1) => Method::ReadRegister,
        (Some(Object::Register), "write", 2) => Method::WriteRegister,
        (Some(Object::Counter), "count", 1) => Method::Count,
        (Some(Object::DirectCounter), "count", 0) => Method::CountDirect,
        (Some(Object::Meter), "execute", 1 | 2) => Method::Execute,
        (Some(Object::DirectMeter), "execute", 0 | 1) => Method::ExecuteDirect,
        (Some(Object::Digest), "pack", 1) => Method::Pack,
        _ => Method::Unimplemented(format!("{}.{name}", object.declared.name).into()),
    }
}
