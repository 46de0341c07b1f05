//! Lists and structs in braces, and their default values (P4_16 specification, sections 8.12 to
//! 8.14 and 7.3).

use std::collections::HashMap;

use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::evaluation::order_matters;
use super::{Checked, Checker, constant};
use crate::ir::{Expression, ExpressionKind, RecordKind, Type};

impl Checker<'_> {
    /// Checks `{a, b}` or `{a, b, ...}`.
    pub(super) fn list(
        &mut self,
        span: Span,
        values: &[ast::Expression],
        wanted: Option<&Type>,
    ) -> Checked<Expression> {
        let rest = values.last().is_some_and(|last| matches!(last.kind, Kind::Rest));
        let given = &values[..values.len() - usize::from(rest)];
        let wanted =
            wanted.filter(|of| matches!(of, Type::Tuple(_) | Type::Record(_) | Type::Stack(..)));
        let types = wanted.map(|of| self.program.parts(of)).unwrap_or_default();
        let all: Vec<_> = (0..)
            .zip(given)
            .map(|(at, value)| self.expression(value, types.get::<usize>(at)))
            .collect();
        let mut fields = all.into_iter().collect::<Checked<Vec<_>>>()?;
        if rest {
            let Some(wanted) = wanted else { return self.unknown_type(span) };
            if fields.len() > types.len() {
                let what = self.describe(wanted);
                return self.wrong(span, format!("{what} has {} fields", types.len()));
            }
            let last = values[values.len() - 1].span;
            for of in &types[fields.len()..] {
                fields.push(constant(last, of.clone(), self.program.initial(of)));
            }
        }
        let of = Type::Tuple(fields.iter().map(|field| field.of.clone()).collect());
        let list = Expression { span, of, kind: ExpressionKind::Fields(fields) };
        match wanted {
            Some(wanted) => self.convert(list, wanted),
            None => Ok(list),
        }
    }

    /// Checks `{a = 1, b = 2}`, with an optional `...`.
    pub(super) fn named_fields(
        &mut self,
        span: Span,
        given: &[(ast::Name, ast::Expression)],
        rest: bool,
        wanted: Option<&Type>,
    ) -> Checked<Expression> {
        let Some(of) = wanted else { return self.unknown_type(span) };
        if let (true, true, Type::Tuple(_) | Type::Stack(..)) = (given.is_empty(), rest, of) {
            return Ok(constant(span, of.clone(), self.program.initial(of)));
        }
        let Some(record) = self.record(of).filter(|one| one.kind != RecordKind::Union) else {
            let what = self.describe(of);
            return self.wrong(span, format!("{what} has no fields to be named"));
        };
        let fields = record.fields.clone();
        let mut values: HashMap<&str, &ast::Expression> = HashMap::new();
        for (name, value) in given {
            if !fields.iter().any(|field| field.declared.name == name.text) {
                let names = fields.iter().map(|field| field.declared.name.clone());
                return self.no_member(name, of, names);
            }
            if values.insert(&name.text, value).is_some() {
                return self.wrong(name.span, format!("`{}` is given twice", name.text));
            }
        }
        let mut all = Vec::with_capacity(fields.len());
        for field in &fields {
            match values.get(&*field.declared.name) {
                Some(value) => all.push(self.expression_as(value, &field.of)?),
                None if rest => {
                    all.push(constant(span, field.of.clone(), self.program.initial(&field.of)));
                }
                None => {
                    let name = &field.declared.name;
                    let diagnostic = Diagnostic::error(span, format!("`{name}` has no value here"));
                    return self.refuse(diagnostic.help("`...` at the end gives the rest zeros"));
                }
            }
        }
        let place = |(name, _): &(ast::Name, _)| {
            fields.iter().position(|one| one.declared.name == name.text)
        };
        if !given.iter().map(place).is_sorted() && order_matters(&all) {
            return self.out_of_order(span, "fields");
        }
        Ok(Expression { span, of: of.clone(), kind: ExpressionKind::Fields(all) })
    }

    /// Checks `{#}`.
    pub(super) fn invalid(&mut self, span: Span, wanted: Option<&Type>) -> Checked<Expression> {
        let Some(of) = wanted else { return self.unknown_type(span) };
        if !self.is_header_or_union(of) {
            let what = self.describe(of);
            return self.wrong(span, format!("{{#}} is a header that is not valid, and no {what}"));
        }
        Ok(Expression { span, of: of.clone(), kind: ExpressionKind::Invalid })
    }

    fn unknown_type(&mut self, span: Span) -> Checked<Expression> {
        let diagnostic = Diagnostic::error(span, "cannot infer the type of this");
        self.refuse(diagnostic.help("a cast does: (TYPE) {…}"))
    }
}
