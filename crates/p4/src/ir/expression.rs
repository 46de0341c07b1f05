//! Expressions: every one has its type, and every cast is written out.

use super::types::{
    ActionId, ExternFunctionId, FunctionId, InstanceId, TableId, Type, ValueSetId, VariableId,
};
use super::value::Value;
use crate::source::Span;
pub use crate::syntax::ast::{Binary, Unary};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Where it stands.
    pub span: Span,
    /// Its type.
    pub of: Type,
    /// What it is.
    pub kind: ExpressionKind,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// A value that is known.
    Constant(Value),
    /// A variable or a parameter.
    Variable(VariableId),
    /// The n-th parameter of the constructor of the parser or control around it.
    ConstructorParameter(usize),
    /// `left.field`, by its place.
    Field(Box<Expression>, usize),
    /// `stack[index]`
    Element(Box<Expression>, Box<Expression>),
    /// `stack.next`; the parser stops with `StackOutOfBounds` where there is none.
    Next(Box<Expression>),
    /// `stack.last`; likewise.
    Last(Box<Expression>),
    /// `stack.lastIndex`
    LastIndex(Box<Expression>),
    /// `left[high:low]`
    Slice(Box<Expression>, u32, u32),
    /// `-value` and the like.
    Unary(Unary, Box<Expression>),
    /// `left + right` and the like. Both sides of most have one type (section 8.6).
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// The value, as the type of this expression (section 8.11).
    Cast(Box<Expression>),
    /// `condition ? yes : no`; one of both is looked at.
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
    /// The fields of a record, a tuple or a stack, in their order.
    Fields(Vec<Expression>),
    /// A header that is not valid.
    Invalid,
    /// `header.isValid()`; of a union, whether one of it is.
    IsValid(Box<Expression>),
    /// `packet.lookahead<TYPE>()`
    Lookahead,
    /// `packet.length()`
    PacketLength,
    /// A function of the program.
    Call(FunctionId, Vec<Expression>),
    /// A function that somebody else has.
    ExternCall(ExternCall),
    /// `table.apply().hit` and the others.
    Apply(TableId, Applied),
}

/// A call of what the model or the tenant has.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternCall {
    /// What is called.
    pub callee: Callee,
    /// The types that it is generic over.
    pub types: Vec<Type>,
    /// What it takes, in the order of its parameters; those it gives back are places.
    pub arguments: Vec<Expression>,
}

/// What an [`ExternCall`] calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// A function.
    Function(ExternFunctionId),
    /// A method, by its place in the extern's list, of an object.
    Method(InstanceId, usize),
}

/// What is asked of a table that is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// Whether an entry was found.
    Hit,
    /// Whether none was.
    Miss,
}

/// What a key is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Set {
    /// `_` or `default`.
    Any,
    /// The value.
    Value(Expression),
    /// `value &&& mask`
    Mask(Expression, Expression),
    /// `from .. to`, both included.
    Range(Expression, Expression),
    /// What the control plane put in.
    Of(ValueSetId),
}

/// An action, and the arguments that the program gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCall {
    /// Which.
    pub action: ActionId,
    /// What it takes; for an action of a table, only the parameters that have a direction.
    pub arguments: Vec<Expression>,
}

impl Expression {
    /// Its value, if it is known.
    pub fn constant(&self) -> Option<&Value> {
        match &self.kind {
            ExpressionKind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Whether another one is written alike, wherever it stands.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        use ExpressionKind as K;
        let all = |one: &[Self], other: &[Self]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_like(other))
        };
        match (&self.kind, &other.kind) {
            (K::Field(of, at), K::Field(other, place)) => at == place && of.is_like(other),
            (K::Element(of, at), K::Element(other, place)) => {
                at.is_like(place) && of.is_like(other)
            }
            (K::Slice(of, high, low), K::Slice(other, first, last)) => {
                (high, low) == (first, last) && of.is_like(other)
            }
            (K::Cast(of), K::Cast(other)) => self.of == other.of && of.is_like(other),
            (K::Unary(one, of), K::Unary(two, other)) => one == two && of.is_like(other),
            (K::Binary(one, left, right), K::Binary(two, first, second)) => {
                one == two && left.is_like(first) && right.is_like(second)
            }
            (K::Fields(one), K::Fields(other)) => all(one, other),
            (K::Choose(is, yes, no), K::Choose(other, first, second)) => {
                is.is_like(other) && yes.is_like(first) && no.is_like(second)
            }
            (K::IsValid(of), K::IsValid(other)) => of.is_like(other),
            (K::Call(one, given), K::Call(two, other)) => one == two && all(given, other),
            (one, other) => one == other,
        }
    }

    /// Whether it is a place that a value can be put in.
    pub fn is_place(&self) -> bool {
        use ExpressionKind as K;
        match &self.kind {
            K::Variable(_) => true,
            K::Field(of, _) | K::Element(of, _) | K::Slice(of, ..) | K::Next(of) | K::Last(of) => {
                of.is_place()
            }
            _ => false,
        }
    }
}
