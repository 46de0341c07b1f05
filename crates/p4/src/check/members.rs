//! Member access (P4_16 specification, sections 8.17 to 8.20).

use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, Place, constant};
use crate::ir::{Expression, ExpressionKind, Type, Value};

impl Checker<'_> {
    /// Checks `of.name`.
    pub(super) fn member(
        &mut self,
        span: Span,
        of: &ast::Expression,
        name: &ast::Name,
    ) -> Checked<Expression> {
        if let Some(applied) = self.applied(span, of, name) {
            return applied;
        }
        if let Some(of) = self.type_named(of) {
            return self.enum_member(span, &of, name);
        }
        let of = self.expression(of, None)?;
        if let Type::Stack(element, size) = &of.of {
            let (element, size) = ((**element).clone(), *size);
            return self.stack_member(span, of, name, (element, size));
        }
        let Some(record) = self.record(&of.of) else {
            return self.no_member(name, &of.of.clone(), std::iter::empty());
        };
        let fields = &record.fields;
        match fields.iter().position(|field| field.declared.name == name.text) {
            Some(at) => {
                let to = fields[at].of.clone();
                Ok(self.field(span, of, at, to))
            }
            None => {
                if self.is_header_or_union(&of.of) && &*name.text == "isValid" {
                    let diagnostic = Diagnostic::error(name.span, "`isValid` is called");
                    return self.refuse(diagnostic.help("write `isValid()`"));
                }
                let known: Vec<_> =
                    fields.iter().map(|field| field.declared.name.clone()).collect();
                self.no_member(name, &of.of.clone(), known.into_iter())
            }
        }
    }

    /// Returns the type that an expression names.
    fn type_named(&self, of: &ast::Expression) -> Option<Type> {
        let symbol = match &of.kind {
            Kind::Name(name) => self.scopes.find(name)?,
            Kind::TopName(name) => self.scopes.find_at_top(&name.text)?,
            _ => return None,
        };
        match symbol {
            Symbol::Type(of) => Some(of.clone()),
            _ => None,
        }
    }

    fn enum_member(&mut self, span: Span, of: &Type, name: &ast::Name) -> Checked<Expression> {
        let Type::Enum(id) = of else {
            let what = self.describe(of);
            let diagnostic =
                Diagnostic::error(span, format!("{what} is a type, and has no values"));
            return self
                .refuse(diagnostic.help("write the name of a parameter or a variable of it"));
        };
        let members = self.program.enums[id.index()].members.clone();
        match members.iter().position(|(member, _)| *member == name.text) {
            Some(at) => {
                let value = match &members[at].1 {
                    Some(value) => Value::Integer(value.clone()),
                    None => Value::Member(at),
                };
                Ok(constant(span, of.clone(), value))
            }
            None => self.no_member(name, of, members.into_iter().map(|(member, _)| member)),
        }
    }

    fn stack_member(
        &mut self,
        span: Span,
        of: Expression,
        name: &ast::Name,
        (element, size): (Type, u32),
    ) -> Checked<Expression> {
        let stack = Box::new(of);
        let (of, kind) = match &*name.text {
            "size" => {
                return Ok(constant(span, Type::bit(32), num_bigint::BigInt::from(size)));
            }
            "next" => (element, ExpressionKind::Next(stack)),
            "last" => (element, ExpressionKind::Last(stack)),
            "lastIndex" => (Type::bit(32), ExpressionKind::LastIndex(stack)),
            _ => {
                let known = ["next", "last", "lastIndex", "size"].map(Into::into);
                return self.no_member(name, &stack.of, known.into_iter());
            }
        };
        let why = format!("`{}` of a stack belongs in a parser's states", name.text);
        self.require(span, Place::State, &why)?;
        Ok(Expression { span, of, kind })
    }

    /// Checks a built-in member of headers, such as `isValid` or `minSizeInBits`; None for others.
    pub(super) fn builtin_value(
        &mut self,
        span: Span,
        of: &Expression,
        name: &str,
    ) -> Option<Checked<Expression>> {
        if name == "isValid" && self.is_header_or_union(&of.of) {
            let kind = ExpressionKind::IsValid(Box::new(of.clone()));
            return Some(Ok(Expression { span, of: Type::Bool, kind }));
        }
        self.size_value(span, &of.of, name)
    }

    /// Checks a size member of types, such as `minSizeInBits`; None for others.
    pub(super) fn size_value(
        &mut self,
        span: Span,
        of: &Type,
        name: &str,
    ) -> Option<Checked<Expression>> {
        let ("minSizeInBits" | "maxSizeInBits" | "minSizeInBytes" | "maxSizeInBytes") = name else {
            return None;
        };
        let Some((least, most)) = self.program.size_of(of) else {
            let what = self.describe(of);
            return Some(self.wrong(span, format!("{what} has no size")));
        };
        let bits = if name.starts_with("min") { least } else { most };
        let size = if name.ends_with("Bits") { bits } else { bits.div_ceil(8) };
        Some(Ok(constant(span, Type::Integer, num_bigint::BigInt::from(size))))
    }
}
