//! Values.

use std::sync::Arc;

use num_bigint::BigInt;

/// A value of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Of `bool`.
    Bool(bool),
    /// Of `bit<W>`, `int<W>`, `int` or a represented enumeration.
    Integer(BigInt),
    /// Of `string`.
    String(Arc<str>),
    /// Of `error`, by its place in [`Program::errors`](super::Program::errors).
    Error(usize),
    /// Of an enumeration that has no representation, by its place in it.
    Member(usize),
    /// Of a header, a union, a struct or a tuple.
    Record {
        /// Whether a header is valid; true for others.
        valid: bool,
        /// Its fields.
        fields: Vec<Value>,
    },
    /// Of a header stack.
    Stack {
        /// The element that is extracted next.
        next: usize,
        /// Its headers.
        elements: Vec<Value>,
    },
    /// Of `varbit<W>`.
    Varbit {
        /// Its bits at the moment.
        bits: u32,
        /// Their value, the first bit the highest.
        value: BigInt,
    },
}

impl Value {
    /// Fields of something that is no header, or is valid.
    pub fn record(fields: Vec<Self>) -> Self {
        Self::Record { valid: true, fields }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<BigInt> for Value {
    fn from(value: BigInt) -> Self {
        Self::Integer(value)
    }
}
