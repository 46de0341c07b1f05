//! Values.

use std::sync::Arc;

use num_bigint::BigInt;

/// A value of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Value of `bool`.
    Bool(bool),
    /// Value of `bit<W>`, `int<W>`, `int` or a serializable enumeration.
    Integer(BigInt),
    /// Value of `string`.
    String(Arc<str>),
    /// Value of `error`: an index into [`Program::errors`](super::Program::errors).
    Error(usize),
    /// Value of an enumeration without an underlying type: the index of the member.
    Member(usize),
    /// Value of a header, a union, a struct or a tuple.
    Record {
        /// Validity bit of a header; true for other types.
        valid: bool,
        /// Values of the fields.
        fields: Vec<Value>,
    },
    /// Value of a header stack.
    Stack {
        /// Index of the next element to extract.
        next: usize,
        /// The elements.
        elements: Vec<Value>,
    },
    /// Value of `varbit<W>`.
    Varbit {
        /// Current width in bits.
        bits: u32,
        /// The bits as a number, most significant bit first.
        value: BigInt,
    },
}

impl Value {
    /// Creates a valid header or another record.
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
