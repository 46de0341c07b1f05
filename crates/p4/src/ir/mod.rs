//! Intermediate representation: resolved names, typed expressions and explicit casts.
//!
//! Calls are not inlined and keep the language's semantics (P4_16 specification, sections 6.8 and
//! 8). The interpreter executes this representation directly.

pub mod arithmetic;
mod elaborated;
mod expression;
mod externs;
mod program;
mod shape;
mod statement;
mod types;
mod value;

pub(crate) use elaborated::name_annotation;
pub use elaborated::{
    Elaborated, MAX_ELEMENTS, MAX_PARTS, NotElaborated, PlacedBlock, PlacedObject,
    control_plane_name,
};
pub use expression::{
    ActionCall, Applied, Binary, Callee, Expression, ExpressionKind, ExternCall, Set, Unary,
};
pub use externs::{ExternFunction, Method};
pub use program::{
    Action, Block, BlockBody, ConstructorArgument, Entry, Extern, Function, Instance, InstanceKind,
    Key, Main, MatchKind, Parameter, Program, Prototype, State, Table, TableAction, Target,
    Transition, ValueSet, Variable,
};
pub use statement::{Statement, StatementKind};
pub use types::{
    ActionId, BlockId, Declared, Enum, EnumId, ExternFunctionId, ExternId, Field, FunctionId,
    InstanceId, NewType, NewTypeId, Record, RecordId, RecordKind, StateId, TableId, Type,
    ValueSetId, VariableId,
};
pub use value::Value;
