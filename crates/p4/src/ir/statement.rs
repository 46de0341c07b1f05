//! Statements.

use super::expression::{ActionCall, Expression};
use super::types::{ActionId, InstanceId, TableId, VariableId};
use crate::source::Span;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Where it stands.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// A variable begins, with a value or with none: headers in it are not valid then.
    Declare(VariableId, Option<Expression>),
    /// The place takes the value.
    Assign(Expression, Expression),
    /// A call whose value nobody takes.
    Evaluate(Expression),
    /// `if (…) … else …`
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// `switch (value)`: what it does for which values; the last for all others.
    Switch(Expression, Vec<(Vec<Expression>, Vec<Statement>)>, Vec<Statement>),
    /// `switch (table.apply().action_run)`
    SwitchAction(TableId, Vec<(Vec<ActionId>, Vec<Statement>)>, Vec<Statement>),
    /// `for (…)`: while the condition holds, the body, then the step.
    Loop(Expression, Vec<Statement>, Vec<Statement>),
    /// `for (… in from .. to)`: the variable takes each value.
    ForRange(VariableId, Expression, Expression, Vec<Statement>),
    /// Out of the loop.
    Break,
    /// To the loop's next turn.
    Continue,
    /// Out of the function, action or control.
    Return(Option<Expression>),
    /// Out of the whole pipeline.
    Exit,
    /// One behind the other.
    Block(Vec<Statement>),
    /// `table.apply();`
    ApplyTable(TableId),
    /// `control.apply(…);` or `parser.apply(…);`
    ApplyBlock(InstanceId, Vec<Expression>),
    /// `action(…);`
    CallAction(ActionCall),
    /// `packet.extract(header)`; with the bits of its varbit.
    Extract(Expression, Option<Expression>),
    /// `packet.extract<T>(_)`: goes behind a header of this many bits.
    Advance(Expression),
    /// `packet.emit(value)`
    Emit(Expression),
    /// `verify(condition, error)`
    Verify(Expression, Expression),
    /// `header.setValid()` or `setInvalid()`
    SetValid(Expression, bool),
    /// `stack.push_front(count)`, or `pop_front` if it is negative.
    Shift(Expression, i64),
}
