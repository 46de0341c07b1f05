//! Types after name resolution (P4_16 specification, section 7).

use std::sync::Arc;

use p4_syntax::source::Span;

/// A type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// `bool`
    Bool,
    /// `bit<W>`, or `int<W>` if signed.
    Bits {
        /// Width in bits.
        width: u32,
        /// True for two's complement.
        signed: bool,
    },
    /// `int`: arbitrary precision, known at compile time.
    Integer,
    /// `varbit<W>`: at most this number of bits.
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
    /// `tuple<…>`, and the type of `{a, b}`.
    Tuple(Arc<[Type]>),
    /// `list<TYPE>`
    List(Arc<Type>),
    /// `type TYPE name`: distinct from every other type.
    New(NewTypeId),
    /// An extern object and its type arguments.
    Extern(ExternId, Arc<[Type]>),
    /// A type variable, to be inferred at a call or a package instantiation: the index of the type
    /// parameter in its declaration.
    Parameter(u32),
    /// `_`: don't care.
    Any,
}

impl Type {
    /// `bit<width>`
    pub const fn bit(width: u32) -> Self {
        Self::Bits { width, signed: false }
    }

    /// Returns true for `bit<W>` and `int<W>`.
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
            /// Index into the list.
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
    /// A state of a parser.
    StateId;
}

/// A declared name, its source span and its annotations.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The name.
    pub name: Arc<str>,
    /// Source span of the declaration.
    pub span: Span,
    /// Annotations such as `@name`, as tokens.
    pub annotations: Vec<p4_syntax::ast::Annotation>,
}

/// A header, a header union or a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Name.
    pub declared: Declared,
    /// The kind of record.
    pub kind: RecordKind,
    /// Fields, in their order on the wire.
    pub fields: Vec<Field>,
    /// For an instance of a generic type, the type arguments.
    pub arguments: Vec<Type>,
}

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// `struct`
    Struct,
    /// `header`: has a validity bit
    Header,
    /// `header_union`: at most one of its headers is valid
    Union,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name.
    pub declared: Declared,
    /// Type.
    pub of: Type,
}

/// An enumeration.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    /// Name.
    pub declared: Declared,
    /// Underlying type of a serializable enumeration.
    pub representation: Option<Type>,
    /// Members, with their values in a serializable enumeration.
    pub members: Vec<(Arc<str>, Option<num_bigint::BigInt>)>,
}

/// `type TYPE name`
#[derive(Debug, Clone, PartialEq)]
pub struct NewType {
    /// Name.
    pub declared: Declared,
    /// The underlying type.
    pub of: Type,
}
