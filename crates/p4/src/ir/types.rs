//! Types, as they are when every name in them is known (P4_16 specification, section 7).

use std::sync::Arc;

use crate::source::Span;

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool`
    Bool,
    /// `bit<W>`, or `int<W>` if signed.
    Bits {
        /// Its bits.
        width: u32,
        /// Whether it is in two's complement.
        signed: bool,
    },
    /// `int`: of any precision, known when the program is compiled.
    Integer,
    /// `varbit<W>`: up to so many bits.
    Varbit(u32),
    /// `string`
    String,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `void`
    Void,
    /// One of [`Program::enums`](super::Program::enums).
    Enum(EnumId),
    /// One of [`Program::records`](super::Program::records): a header, a union or a struct.
    Record(RecordId),
    /// `TYPE[size]`
    Stack(Arc<Type>, u32),
    /// `tuple<…>`, and what `{a, b}` is.
    Tuple(Arc<[Type]>),
    /// `list<TYPE>`
    List(Arc<Type>),
    /// `type TYPE name`: like no other.
    New(NewTypeId),
    /// An extern object, with the types that it is made for.
    Extern(ExternId, Arc<[Type]>),
    /// A type that a call or a package makes known: the n-th that its declaration is generic over.
    Parameter(u32),
    /// `_`: any.
    Any,
}

impl Type {
    /// `bit<width>`
    pub const fn bit(width: u32) -> Self {
        Self::Bits { width, signed: false }
    }

    /// Whether it is a number with a width.
    pub fn is_bits(&self) -> bool {
        matches!(self, Self::Bits { .. })
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Its place in its list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// One of [`Program::records`](super::Program::records).
    RecordId;
    /// One of [`Program::enums`](super::Program::enums).
    EnumId;
    /// One of [`Program::new_types`](super::Program::new_types).
    NewTypeId;
    /// One of [`Program::externs`](super::Program::externs).
    ExternId;
    /// One of [`Program::extern_functions`](super::Program::extern_functions).
    ExternFunctionId;
    /// One of [`Program::variables`](super::Program::variables).
    VariableId;
    /// One of [`Program::functions`](super::Program::functions).
    FunctionId;
    /// One of [`Program::actions`](super::Program::actions).
    ActionId;
    /// One of [`Program::blocks`](super::Program::blocks).
    BlockId;
    /// One of [`Program::tables`](super::Program::tables).
    TableId;
    /// One of [`Program::value_sets`](super::Program::value_sets).
    ValueSetId;
    /// One of [`Program::instances`](super::Program::instances).
    InstanceId;
    /// One of the states of a parser.
    StateId;
}

/// A name that a program declares, where it does, and what is said beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The name.
    pub name: Arc<str>,
    /// Where it stands.
    pub span: Span,
    /// `@name` and the others, word by word.
    pub annotations: Vec<crate::syntax::ast::Annotation>,
}

/// A type with fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name.
    pub declared: Declared,
    /// Which of the three.
    pub kind: RecordKind,
    /// Its fields, in their order on the wire.
    pub fields: Vec<Field>,
    /// For one of a generic type, the types that it is made for.
    pub arguments: Vec<Type>,
}

/// What a type with fields is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// `struct`
    Struct,
    /// `header`: is valid or not
    Header,
    /// `header_union`: at most one of its headers is valid
    Union,
}

/// A field of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub declared: Declared,
    /// Its type.
    pub of: Type,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Its name.
    pub declared: Declared,
    /// The type that it is on the wire, if it says one.
    pub representation: Option<Type>,
    /// Its names, and the values of those that are represented.
    pub members: Vec<(Arc<str>, Option<num_bigint::BigInt>)>,
}

/// `type TYPE name`
#[derive(Debug, Clone, PartialEq)]
pub struct NewType {
    /// Its name.
    pub declared: Declared,
    /// What it is made of.
    pub of: Type,
}
