//! Expressions and their types (P4_16 specification, section 8).

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use p4_syntax::ast::{self, ExpressionKind as Kind};
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::scope::Symbol;
use super::{Checked, Checker, Place, Reported, constant};
use crate::ir::{Applied, Expression, ExpressionKind, Type, Value};

impl Checker<'_> {
    /// Checks an expression. `wanted` is the expected type, for expressions without a type of their
    /// own.
    pub(super) fn expression(
        &mut self,
        written: &ast::Expression,
        wanted: Option<&Type>,
    ) -> Checked<Expression> {
        let span = written.span;
        match &written.kind {
            Kind::Integer(number) => {
                let of = match number.width {
                    Some((width, signed)) => Type::Bits { width, signed },
                    None => Type::Integer,
                };
                if number.width.is_some_and(|(width, _)| width > super::types::MAX_WIDTH) {
                    let most = super::types::MAX_WIDTH;
                    return self.wrong(span, format!("numbers have at most {most} bits"));
                }
                Ok(constant(span, of, number.value.clone()))
            }
            Kind::Bool(value) => Ok(constant(span, Type::Bool, *value)),
            Kind::String(text) => Ok(constant(span, Type::String, Value::String(text.clone()))),
            Kind::Name(name) => {
                let symbol = self.find_text(name, span)?;
                self.named_value(name, span, symbol)
            }
            Kind::TopName(name) => {
                let symbol = self.top_symbol(name)?;
                self.named_value(&name.text, span, symbol)
            }
            Kind::This => self.unsupported(span, "`this`"),
            Kind::Rest => match wanted {
                Some(of) => Ok(constant(span, of.clone(), self.program.initial(of))),
                None => self.wrong(span, "cannot infer the type of this default"),
            },
            Kind::Default | Kind::DontCare => {
                self.wrong(span, "this is not a value: it stands for any")
            }
            Kind::Invalid => self.invalid(span, wanted),
            Kind::Member(of, name) => self.member(span, of, name),
            Kind::ErrorMember(name) => self.error_member(span, name),
            Kind::Index(of, index) => self.element(span, of, index),
            Kind::Slice(of, high, low) => self.slice(span, of, (high, low)),
            Kind::Call(callee, types, arguments) => self.call_value(span, callee, types, arguments),
            Kind::Cast(to, value) => self.cast(span, to, value),
            Kind::Unary(operator, value) => self.unary(span, *operator, value),
            Kind::Binary(operator, left, right) => self.binary_of(span, *operator, left, right),
            Kind::Choose(condition, yes, no) => self.choose(span, condition, (yes, no), wanted),
            Kind::List(values) => self.list(span, values, wanted),
            Kind::Struct(fields, rest) => self.named_fields(span, fields, *rest, wanted),
            Kind::Tuple(values) => match &values[..] {
                [one] => self.expression(one, wanted),
                _ => self.wrong(span, "values in brackets belong in `select` and a key's entry"),
            },
        }
    }

    /// Checks an expression and converts it to this type.
    pub(super) fn expression_as(
        &mut self,
        written: &ast::Expression,
        of: &Type,
    ) -> Checked<Expression> {
        let found = self.expression(written, Some(of))?;
        self.convert(found, of)
    }

    pub(super) fn top_symbol(&mut self, name: &ast::Name) -> Checked<Symbol> {
        match self.scopes.find_at_top(&name.text) {
            Some(symbol) => Ok(symbol.clone()),
            None => self.wrong(name.span, format!("`{}` is not declared at the top", name.text)),
        }
    }

    fn named_value(&mut self, name: &str, span: Span, symbol: Symbol) -> Checked<Expression> {
        let what = match symbol {
            Symbol::Constant(value) => return Ok(Expression { span, ..value }),
            Symbol::Variable(id) => {
                let of = self.variable(id).of.clone();
                return Ok(Expression { span, of, kind: ExpressionKind::Variable(id) });
            }
            Symbol::ConstructorParameter(at, of) => {
                let kind = ExpressionKind::ConstructorParameter(at);
                return Ok(Expression { span, of, kind });
            }
            Symbol::Wrong => return Err(Reported),
            Symbol::Unfinished => {
                let name = ast::Name { text: name.into(), span };
                return self.calls_itself(&name);
            }
            Symbol::Type(_) | Symbol::GenericRecord(_) | Symbol::GenericExtern(_) => "a type",
            Symbol::BlockType(_) => "the type of a parser or a control",
            Symbol::Package(_) => "a package",
            Symbol::Functions(_) | Symbol::ExternFunctions(_) => "a function",
            Symbol::Action(_) => "an action",
            Symbol::Table(_) => "a table",
            Symbol::Block(_) => "a parser or a control",
            Symbol::Instance(_) => "an object",
            Symbol::ValueSet(_) => "a value set",
        };
        self.wrong(span, format!("`{name}` is {what}, not a value"))
    }

    fn error_member(&mut self, span: Span, name: &ast::Name) -> Checked<Expression> {
        let known = self.program.errors.iter().position(|one| *one == name.text);
        match known {
            Some(at) => Ok(constant(span, Type::Error, Value::Error(at))),
            None => {
                let names = self.program.errors.clone();
                self.no_member(name, &Type::Error, names.into_iter())
            }
        }
    }

    /// Reports that a type has no such member, and suggests a similar one.
    pub(super) fn no_member<T>(
        &mut self,
        name: &ast::Name,
        of: &Type,
        known: impl Iterator<Item = std::sync::Arc<str>>,
    ) -> Checked<T> {
        let what = self.describe(of);
        let mut diagnostic = Diagnostic::error(name.span, format!("{what} has no `{}`", name.text));
        let known: Vec<_> = known.collect();
        if let Some(help) =
            p4_syntax::words::counterpart(&name.text).filter(|_| self.program.is_metadata(of))
        {
            diagnostic = diagnostic.help(help);
        } else if let Some(similar) = p4_syntax::words::closest(&name.text, known.iter().cloned()) {
            diagnostic = diagnostic.help(format!("it has `{similar}`"));
        } else if !known.is_empty() && known.len() <= 12 {
            let all: Vec<_> = known.iter().map(|one| format!("`{one}`")).collect();
            diagnostic = diagnostic.help(format!("it has {}", all.join(", ")));
        }
        self.refuse(diagnostic)
    }

    /// Checks `stack[index]`.
    fn element(
        &mut self,
        span: Span,
        of: &ast::Expression,
        index: &ast::Expression,
    ) -> Checked<Expression> {
        let of = self.expression(of, None);
        let index = self.expression(index, None);
        let (of, index) = (of?, index?);
        let index = self.as_number(index);
        let (element, size) = match &of.of {
            Type::Stack(element, size) => ((**element).clone(), *size),
            Type::Tuple(types) => return self.tuple_element(span, types.to_vec(), of, &index),
            other => {
                let what = self.describe(other);
                return self.wrong(span, format!("{what} has no elements"));
            }
        };
        let index = match index.constant() {
            Some(Value::Integer(at)) if *at < BigInt::from(size) && *at >= BigInt::ZERO => {
                constant(index.span, Type::bit(32), at.clone())
            }
            Some(_) => {
                let diagnostic = Diagnostic::error(index.span, "the stack has no such element");
                return self.refuse(diagnostic.label(format!("expected 0 to {}", size - 1)));
            }
            None if index.of.is_bits() => index,
            None => {
                let what = self.describe(&index.of);
                return self.wrong(index.span, format!("{what} cannot be an index"));
            }
        };
        let kind = ExpressionKind::Element(Box::new(of), Box::new(index));
        Ok(Expression { span, of: element, kind })
    }

    fn tuple_element(
        &mut self,
        span: Span,
        types: Vec<Type>,
        of: Expression,
        index: &Expression,
    ) -> Checked<Expression> {
        let at = match index.constant() {
            Some(Value::Integer(at)) => at.to_usize(),
            _ => None,
        };
        match at.and_then(|at| Some((at, types.get(at)?.clone()))) {
            Some((at, element)) => Ok(self.field(span, of, at, element)),
            None => {
                let diagnostic = Diagnostic::error(index.span, "the tuple has no such element");
                let last = types.len().saturating_sub(1);
                self.refuse(
                    diagnostic.label(format!("expected a number from 0 to {last}, known now")),
                )
            }
        }
    }

    /// Returns a field by index; a constant if the record is constant.
    pub(super) fn field(&self, span: Span, of: Expression, at: usize, to: Type) -> Expression {
        if let Some(Value::Record { fields, .. }) = of.constant() {
            return constant(span, to, fields[at].clone());
        }
        Expression { span, of: to, kind: ExpressionKind::Field(Box::new(of), at) }
    }

    /// Checks `table.apply().hit` or `table.apply().miss`; None for other expressions.
    pub(super) fn applied(
        &mut self,
        span: Span,
        of: &ast::Expression,
        name: &ast::Name,
    ) -> Option<Checked<Expression>> {
        let Kind::Call(callee, ..) = &of.kind else { return None };
        let table = self.table_applied(callee)?;
        let how = match &*name.text {
            "hit" => Applied::Hit,
            "miss" => Applied::Miss,
            "action_run" => {
                let diagnostic = Diagnostic::error(span, "`action_run` is not a value by itself");
                return Some(
                    self.refuse(diagnostic.help("use it as `switch (t.apply().action_run)`")),
                );
            }
            _ => {
                return Some(
                    self.wrong(name.span, "a table's result has `hit`, `miss` and `action_run`"),
                );
            }
        };
        if let Err(reported) = self.require(span, Place::Apply, "a table is applied in `apply`") {
            return Some(Err(reported));
        }
        self.calls(self.depths.tables[table.index()]);
        let kind = ExpressionKind::Apply(table, how);
        Some(Ok(Expression { span, of: Type::Bool, kind }))
    }

    /// Reports an error unless the context is the required one.
    pub(super) fn require(&mut self, span: Span, place: Place, why: &str) -> Checked<()> {
        if self.place == place { Ok(()) } else { self.wrong(span, format!("{why}, not here")) }
    }
}
