//! Extern functions and methods, resolved to what the back ends implement. Each back end matches
//! these enums exhaustively.

use std::sync::Arc;

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
    /// A function of a library. Its arguments and its result are numbers of at most 64 bits.
    Library(Arc<str>),
    /// A function of this name that neither the model nor an annotation implements.
    Unimplemented(Arc<str>),
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
