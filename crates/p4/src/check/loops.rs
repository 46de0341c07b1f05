//! Loops (P4_16 specification, section 12.8).

use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, constant, declared};
use crate::ir::{
    Binary, Declared, Expression, ExpressionKind, Statement, StatementKind, Type, VariableId,
};

/// Maximum number of values in a list that a loop iterates over.
const MAX_VALUES: usize = 256;

impl Checker<'_> {
    pub(super) fn for_loop(
        &mut self,
        span: Span,
        first: &[ast::Statement],
        condition: Option<&ast::Expression>,
        step: &[ast::Statement],
        body: &ast::Statement,
    ) -> Checked<StatementKind> {
        self.scopes.open();
        let first = self.statements(first);
        let condition = match condition {
            Some(condition) => self.expression_as(condition, &Type::Bool),
            None => Ok(constant(span, Type::Bool, true)),
        };
        let step = self.statements(step);
        self.loops += 1;
        let body = self.one_statement(body);
        self.loops -= 1;
        self.scopes.close();
        let mut all = first?;
        all.push(Statement { span, kind: StatementKind::Loop(condition?, body?, step?) });
        Ok(StatementKind::Block(all))
    }

    /// Checks `for (TYPE name in values) …`, over a range, a list or a stack.
    pub(super) fn for_in(
        &mut self,
        of: &ast::Type,
        name: &ast::Name,
        values: &ast::Expression,
        body: &ast::Statement,
    ) -> Checked<StatementKind> {
        let of = self.type_of(of)?;
        match &values.kind {
            Kind::Binary(Binary::Range, from, to) => {
                if !of.is_bits() {
                    let what = self.describe(&of);
                    return self.wrong(name.span, format!("cannot iterate over a range of {what}"));
                }
                let (from, to) = (self.expression_as(from, &of)?, self.expression_as(to, &of)?);
                let (id, body) = self.for_body(of, name, body)?;
                Ok(StatementKind::ForRange(id, from, to, body))
            }
            Kind::List(values) => self.for_list(of, name, values, body),
            Kind::Cast(ast::Type { kind: ast::TypeKind::List(_), .. }, list) => match &list.kind {
                Kind::List(values) => self.for_list(of, name, values, body),
                _ => self.for_stack(of, name, list, body),
            },
            _ => self.for_stack(of, name, values, body),
        }
    }

    fn for_body(
        &mut self,
        of: Type,
        name: &ast::Name,
        body: &ast::Statement,
    ) -> Checked<(VariableId, Vec<Statement>)> {
        self.scopes.open();
        let id = self.new_variable(declared(name, &[]), of, None);
        self.declare(name, Symbol::Variable(id));
        self.loops += 1;
        let body = self.one_statement(body);
        self.loops -= 1;
        self.scopes.close();
        Ok((id, body?))
    }

    /// Evaluates all values before the first iteration, then selects them by a loop counter.
    fn for_list(
        &mut self,
        of: Type,
        name: &ast::Name,
        values: &[ast::Expression],
        body: &ast::Statement,
    ) -> Checked<StatementKind> {
        if values.len() > MAX_VALUES {
            let message = format!("a loop iterates over at most {MAX_VALUES} values");
            return self.wrong(name.span, message);
        }
        let mut all = Vec::with_capacity(values.len() + 1);
        let mut kept = Vec::with_capacity(values.len());
        for value in values {
            let value = self.expression_as(value, &of)?;
            let (place, begin) = self.kept(value);
            kept.push(place);
            all.push(begin);
        }
        let (id, body) = self.for_body(of, name, body)?;
        let Some(last) = kept.pop() else { return Ok(StatementKind::Block(all)) };
        let count = kept.len();
        let (index, at) = self.index_variable(name.span);
        let value =
            (0..count).rev().zip(kept.into_iter().rev()).fold(last, |rest, (place, one)| {
                let span = one.span;
                let place = constant(span, Type::bit(32), num_bigint::BigInt::from(place));
                let is =
                    ExpressionKind::Binary(Binary::Equal, Box::new(at.clone()), Box::new(place));
                let is = Box::new(Expression { span, of: Type::Bool, kind: is });
                let of = one.of.clone();
                let kind = ExpressionKind::Choose(is, Box::new(one), Box::new(rest));
                Expression { span, of, kind }
            });
        all.push(self.counted(id, index, count, value, body));
        Ok(StatementKind::Block(all))
    }

    fn for_stack(
        &mut self,
        of: Type,
        name: &ast::Name,
        values: &ast::Expression,
        body: &ast::Statement,
    ) -> Checked<StatementKind> {
        let stack = self.expression(values, None)?;
        let span = stack.span;
        let Type::Stack(element, size) = stack.of.clone() else {
            let what = self.describe(&stack.of);
            return self.wrong(
                span,
                format!("a loop iterates over a range, a list or a stack, not {what}"),
            );
        };
        if *element != of {
            let (of, element) = (self.describe(&of), self.describe(&element));
            return self.wrong(name.span, format!("this is {of}, and the stack has {element}"));
        }
        let (place, begin) = self.kept(stack);
        let (id, body) = self.for_body(of.clone(), name, body)?;
        let (index, at) = self.index_variable(name.span);
        let kind = ExpressionKind::Element(Box::new(place), Box::new(at));
        let value = Expression { span, of, kind };
        let count = (size as usize).saturating_sub(1);
        let counted = self.counted(id, index, count, value, body);
        Ok(StatementKind::Block(vec![begin, counted]))
    }

    /// Creates a loop of `at` from 0 to `last` that assigns the value to the loop variable.
    fn counted(
        &self,
        id: VariableId,
        at: VariableId,
        last: usize,
        value: Expression,
        mut body: Vec<Statement>,
    ) -> Statement {
        let span = value.span;
        let number = |value: usize| constant(span, Type::bit(32), num_bigint::BigInt::from(value));
        let kind = ExpressionKind::Variable(id);
        let variable = Expression { span, of: value.of.clone(), kind };
        body.insert(0, Statement { span, kind: StatementKind::Assign(variable, value) });
        Statement { span, kind: StatementKind::ForRange(at, number(0), number(last), body) }
    }

    /// Creates a loop counter.
    fn index_variable(&mut self, span: Span) -> (VariableId, Expression) {
        let declared = Declared { name: "_".into(), span, annotations: Vec::new() };
        let id = self.new_variable(declared, Type::bit(32), None);
        let kind = ExpressionKind::Variable(id);
        (id, Expression { span, of: Type::bit(32), kind })
    }

    /// Creates a temporary variable. Returns it with its declaration.
    fn kept(&mut self, value: Expression) -> (Expression, Statement) {
        let (span, of) = (value.span, value.of.clone());
        let declared = Declared { name: "_".into(), span, annotations: Vec::new() };
        let id = self.new_variable(declared, of.clone(), None);
        let kind = StatementKind::Declare(id, Some(value));
        (Expression { span, of, kind: ExpressionKind::Variable(id) }, Statement { span, kind })
    }
}
