//! Typed expressions. Every cast is explicit.

use super::externs::{ExternFunction, Method};
use super::types::{ActionId, FunctionId, InstanceId, TableId, Type, ValueSetId, VariableId};
use super::value::Value;
pub use p4_syntax::ast::{Binary, Unary};
use p4_syntax::source::Span;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Source span.
    pub span: Span,
    /// Type.
    pub of: Type,
    /// The kind of expression.
    pub kind: ExpressionKind,
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionKind {
    /// A constant.
    Constant(Value),
    /// A variable or a parameter.
    Variable(VariableId),
    /// A constructor parameter of the enclosing parser or control, by index.
    ConstructorParameter(usize),
    /// `left.field`, by field index.
    Field(Box<Expression>, usize),
    /// `stack[index]`
    Element(Box<Expression>, Box<Expression>),
    /// `stack.next`. If the stack is full, the parser stops with `StackOutOfBounds`.
    Next(Box<Expression>),
    /// `stack.last`. If the stack is empty, the parser stops with `StackOutOfBounds`.
    Last(Box<Expression>),
    /// `stack.lastIndex`
    LastIndex(Box<Expression>),
    /// `left[high:low]`
    Slice(Box<Expression>, u32, u32),
    /// A unary operation such as `-value`.
    Unary(Unary, Box<Expression>),
    /// A binary operation such as `left + right`. Most operators need operands of the same type
    /// (section 8.6).
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// A cast to the type of this expression (section 8.11).
    Cast(Box<Expression>),
    /// `condition ? yes : no`. Only one of the two branches is evaluated.
    Choose(Box<Expression>, Box<Expression>, Box<Expression>),
    /// The fields of a record, a tuple or a stack, in order.
    Fields(Vec<Expression>),
    /// An invalid header.
    Invalid,
    /// `header.isValid()`. For a header union, true if one of its headers is valid.
    IsValid(Box<Expression>),
    /// `packet.lookahead<TYPE>()`
    Lookahead,
    /// `packet.length()`
    PacketLength,
    /// A call of a function of the program.
    Call(FunctionId, Vec<Expression>),
    /// A call of an extern function or method.
    ExternCall(ExternCall),
    /// `table.apply().hit` or `table.apply().miss`.
    Apply(TableId, Applied),
}

/// A call of an extern function or method, which the model or the tenant implements.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternCall {
    /// The function or method.
    pub callee: Callee,
    /// Type arguments.
    pub types: Vec<Type>,
    /// Arguments, in the order of the parameters, without the key of a VM value. Those for `out`
    /// and `inout` parameters are l-values.
    pub arguments: Vec<Expression>,
}

/// Callee of an [`ExternCall`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callee {
    /// An extern function.
    Function(ExternFunction),
    /// A method of an instance.
    Method(InstanceId, Method),
}

/// The result of `table.apply()` that an expression uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// True if an entry matched.
    Hit,
    /// True if no entry matched.
    Miss,
}

/// A keyset: the set of values that a key matches.
#[derive(Debug, Clone, PartialEq)]
pub enum Set {
    /// `_` or `default`.
    Any,
    /// A single value.
    Value(Expression),
    /// `value &&& mask`
    Mask(Expression, Expression),
    /// `from .. to`, both inclusive.
    Range(Expression, Expression),
    /// A value set, which the control plane fills.
    Of(ValueSetId),
}

/// An action and the arguments that the program passes.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionCall {
    /// The action.
    pub action: ActionId,
    /// The arguments. For an action of a table, only those of parameters with a direction.
    pub arguments: Vec<Expression>,
}

impl Expression {
    /// Returns the value of a constant expression.
    pub fn constant(&self) -> Option<&Value> {
        match &self.kind {
            ExpressionKind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Returns true if the other expression is syntactically the same, regardless of source spans.
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

    /// Returns true if the expression is an l-value.
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
