//! Statements.

use p4_syntax::source::Span;

use super::expression::{ActionCall, Expression};
use super::types::{ActionId, InstanceId, TableId, VariableId};

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Source span of the statement.
    pub span: Span,
    /// The kind of statement.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// Declaration of a variable, with an optional initial value. Without one, headers in it are
    /// invalid.
    Declare(VariableId, Option<Expression>),
    /// Assignment of a value to an l-value.
    Assign(Expression, Expression),
    /// A call with an unused result.
    Evaluate(Expression),
    /// `if (…) … else …`
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// `switch (value)`: the cases, each with its values and statements, and the default case.
    Switch(Expression, Vec<(Vec<Expression>, Vec<Statement>)>, Vec<Statement>),
    /// `switch (table.apply().action_run)`
    SwitchAction(TableId, Vec<(Vec<ActionId>, Vec<Statement>)>, Vec<Statement>),
    /// `for (…)`: the condition, the body and the step.
    Loop(Expression, Vec<Statement>, Vec<Statement>),
    /// `for (… in from .. to)`: the loop variable, both bounds and the body.
    ForRange(VariableId, Expression, Expression, Vec<Statement>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return …;`
    Return(Option<Expression>),
    /// `exit;`
    Exit,
    /// A block of statements.
    Block(Vec<Statement>),
    /// `table.apply();`
    ApplyTable(TableId),
    /// `control.apply(…);` or `parser.apply(…);`
    ApplyBlock(InstanceId, Vec<Expression>),
    /// `action(…);`
    CallAction(ActionCall),
    /// `packet.extract(header)`, with the width in bits of its varbit field.
    Extract(Expression, Option<Expression>),
    /// `packet.extract<T>(_)`: skips a header of this size in bits.
    Advance(Expression),
    /// `packet.emit(value)`
    Emit(Expression),
    /// `verify(condition, error)`
    Verify(Expression, Expression),
    /// `header.setValid()` or `setInvalid()`
    SetValid(Expression, bool),
    /// `stack.push_front(count)`, or `pop_front` if the count is negative.
    Shift(Expression, i64),
}
