//! Warnings for variables that may be read before they are assigned (P4_16 specification, section
//! 12.1). Only local variables and `out` parameters of scalar types are checked; headers have a
//! validity bit.

use std::collections::{HashMap, HashSet};

use p4_syntax::ast::Direction;
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::Checker;
use crate::ir::{
    BlockBody, Expression, ExpressionKind, Statement, StatementKind, Type, Variable, VariableId,
};

/// Variables that may be unassigned; None for unreachable code.
type Unassigned = Option<HashSet<VariableId>>;

/// Analysis of one body.
struct Body<'b> {
    variables: &'b [Variable],
    now: Unassigned,
    /// The first read of each variable that may be unassigned.
    found: HashMap<VariableId, Span>,
    /// Unassigned variables at the exit of the enclosing loops.
    left: Vec<Unassigned>,
}

impl Checker<'_> {
    /// Analyses all bodies of the program.
    pub(super) fn warn_of_unassigned(&mut self) {
        let variables = &self.program.variables;
        let mut found: Vec<(VariableId, Span)> = Vec::new();
        let mut look = |parameters: &[VariableId], bodies: &[&[Statement]]| {
            let mut body = Body::new(variables, parameters);
            for statements in bodies {
                body.all(statements);
            }
            found.extend(body.found);
        };
        for function in &self.program.functions {
            look(&function.parameters, &[&function.body]);
        }
        for action in &self.program.actions {
            look(&action.parameters, &[&action.body]);
        }
        for block in &self.program.blocks {
            match &block.body {
                // Actions may have assigned the control's local variables.
                BlockBody::Control { apply, .. } => look(&[], &[apply]),
                BlockBody::Parser { states, .. } => {
                    for state in states {
                        look(&[], &[&state.body]);
                    }
                }
            }
        }
        found.sort_unstable_by_key(|(_, span)| *span);
        for (id, span) in found {
            let variable = self.variable(id);
            let message = format!("`{}` may have no value here", variable.declared.name);
            let diagnostic = Diagnostic::warning(span, message)
                .related(variable.declared.span, "declared without one")
                .help("it is zero then: say so, `= 0`");
            self.problems.add(diagnostic);
        }
    }
}

impl<'b> Body<'b> {
    fn new(variables: &'b [Variable], parameters: &[VariableId]) -> Self {
        let mut body =
            Self { variables, now: Some(HashSet::new()), found: HashMap::new(), left: Vec::new() };
        for id in parameters {
            if variables[id.index()].direction == Some(Direction::Out) {
                body.begin(*id);
            }
        }
        body
    }

    /// Declares a variable without a value.
    fn begin(&mut self, id: VariableId) {
        let plain = matches!(
            self.variables[id.index()].of,
            Type::Bool | Type::Bits { .. } | Type::Error | Type::Enum(_) | Type::New(_)
        );
        if let Some(now) = &mut self.now
            && plain
        {
            now.insert(id);
        }
    }

    fn all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// Joins the state of another control flow path.
    fn join(&mut self, other: Unassigned) {
        match (&mut self.now, other) {
            (Some(now), Some(other)) => now.extend(other),
            (now @ None, other) => *now = other,
            (Some(_), None) => {}
        }
    }

    /// Analyses alternative branches and joins their states.
    fn ways(&mut self, ways: &[&[Statement]]) {
        let before = self.now.clone();
        let mut behind = None;
        for way in ways {
            self.now.clone_from(&before);
            self.all(way);
            let now = std::mem::replace(&mut self.now, behind);
            self.join(now);
            behind = self.now.take();
        }
        self.now = behind;
    }

    fn looped(&mut self, body: &[Statement], step: &[Statement]) {
        let before = self.now.clone();
        self.left.push(before);
        self.all(body);
        self.all(step);
        let left = self.left.pop().flatten();
        // The loop may have no iterations.
        self.now = left;
    }

    fn statement(&mut self, statement: &Statement) {
        use StatementKind as K;
        match &statement.kind {
            K::Declare(id, value) => {
                match value {
                    Some(value) => self.read(value),
                    None => self.begin(*id),
                }
                if value.is_some() {
                    self.assign_variable(*id);
                }
            }
            K::Assign(place, value) => {
                self.read(value);
                self.assign(place);
            }
            K::Evaluate(value) | K::Advance(value) | K::Emit(value) => self.read(value),
            K::If(condition, yes, no) => {
                self.read(condition);
                self.ways(&[yes, no]);
            }
            K::Switch(value, cases, other) => {
                self.read(value);
                let mut ways: Vec<&[Statement]> = cases.iter().map(|(_, body)| &body[..]).collect();
                ways.push(other);
                self.ways(&ways);
            }
            K::SwitchAction(_, cases, other) => {
                let mut ways: Vec<&[Statement]> = cases.iter().map(|(_, body)| &body[..]).collect();
                ways.push(other);
                self.ways(&ways);
            }
            K::Loop(condition, body, step) => {
                self.read(condition);
                self.looped(body, step);
            }
            K::ForRange(_, from, to, body) => {
                self.read(from);
                self.read(to);
                self.looped(body, &[]);
            }
            K::Break | K::Continue => {
                let now = self.now.take();
                if let Some(Some(left)) = self.left.last_mut() {
                    left.extend(now.into_iter().flatten());
                }
            }
            K::Return(value) => {
                if let Some(value) = value {
                    self.read(value);
                }
                self.now = None;
            }
            K::Exit => self.now = None,
            K::Block(all) => self.all(all),
            K::ApplyTable(_) => {}
            K::ApplyBlock(_, arguments) => self.hand_over(arguments),
            K::CallAction(call) => self.hand_over(&call.arguments),
            K::Extract(header, bits) => {
                if let Some(bits) = bits {
                    self.read(bits);
                }
                self.assign(header);
            }
            K::Verify(condition, error) => {
                self.read(condition);
                self.read(error);
            }
            K::SetValid(..) | K::Shift(..) => {}
        }
    }

    /// Handles arguments of a call. The callee may assign an l-value, so it counts as assigned.
    fn hand_over(&mut self, arguments: &[Expression]) {
        for argument in arguments {
            if argument.is_place() {
                self.assign(argument);
            } else {
                self.read(argument);
            }
        }
    }

    fn assign_variable(&mut self, id: VariableId) {
        if let Some(now) = &mut self.now {
            now.remove(&id);
        }
    }

    /// Handles an assignment. Assigning a part counts as assigning the whole variable.
    fn assign(&mut self, place: &Expression) {
        use ExpressionKind as K;
        match &place.kind {
            K::Variable(id) => self.assign_variable(*id),
            K::Element(of, index) => {
                self.read(index);
                self.assign(of);
            }
            K::Field(of, _) | K::Slice(of, ..) | K::Next(of) | K::Last(of) => self.assign(of),
            _ => {}
        }
    }

    fn read(&mut self, value: &Expression) {
        use ExpressionKind as K;
        match &value.kind {
            K::Variable(id) if self.now.as_ref().is_some_and(|now| now.contains(id)) => {
                self.found.entry(*id).or_insert(value.span);
            }
            K::Field(of, _)
            | K::Next(of)
            | K::Last(of)
            | K::LastIndex(of)
            | K::Slice(of, ..)
            | K::Unary(_, of)
            | K::Cast(of)
            | K::IsValid(of) => self.read(of),
            K::Element(one, other) | K::Binary(_, one, other) => {
                self.read(one);
                self.read(other);
            }
            K::Choose(condition, yes, no) => {
                self.read(condition);
                self.read(yes);
                self.read(no);
            }
            K::Fields(all) => all.iter().for_each(|one| self.read(one)),
            K::Call(_, arguments) => self.hand_over(arguments),
            K::ExternCall(call) => self.hand_over(&call.arguments),
            _ => {}
        }
    }
}
