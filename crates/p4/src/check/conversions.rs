//! Implicit conversions (P4_16 specification, sections 8.11.2 and 8.12): arbitrary-precision
//! integers, serializable enumerations, and lists in braces.

use num_bigint::BigInt;
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::{Checked, Checker, constant};
use crate::ir::arithmetic::{range, wrap};
use crate::ir::{Expression, ExpressionKind, Type, Value};

impl Checker<'_> {
    /// Converts an expression implicitly to this type, or reports an error.
    pub(super) fn convert(&mut self, from: Expression, to: &Type) -> Checked<Expression> {
        if from.of == *to || *to == Type::Any {
            return Ok(from);
        }
        match (&from.of, to) {
            (Type::Integer, Type::Bits { .. }) => return self.integer_as(from, to, true),
            (Type::Enum(_), Type::Bits { .. }) if self.representation(&from.of) == *to => {
                return Ok(self.as_type(from, to));
            }
            (Type::Tuple(_), Type::Tuple(_) | Type::Record(_) | Type::Stack(..)) => {
                if let ExpressionKind::Fields(fields) = from.kind {
                    return self.list_as(fields, from.span, to);
                }
            }
            _ => {}
        }
        let (wanted, found) = (self.describe(to), self.describe(&from.of));
        let mut diagnostic = Diagnostic::error(from.span, format!("this is {found}, not {wanted}"))
            .label(format!("expected {wanted}"));
        let both = (self.representation(&from.of), self.representation(to));
        if let (Type::Bits { .. }, Type::Bits { .. }) = both {
            diagnostic = diagnostic
                .help(format!("a cast says what is meant: ({})…", wanted.trim_matches('`')));
        } else if matches!((&from.of, to), (Type::Bits { width: 1, .. }, Type::Bool)) {
            diagnostic = diagnostic.help("compare it with 1");
        } else if matches!((&from.of, to), (Type::Bits { .. }, Type::Bool)) {
            diagnostic = diagnostic.help("compare it: `… != 0`");
        }
        self.refuse(diagnostic)
    }

    /// Changes the type of an expression.
    pub(super) fn as_type(&self, from: Expression, to: &Type) -> Expression {
        let (span, of) = (from.span, to.clone());
        match from.kind {
            ExpressionKind::Constant(value) => constant(span, of, value),
            _ => Expression { span, of, kind: ExpressionKind::Cast(Box::new(from)) },
        }
    }

    /// Converts an arbitrary-precision integer to a type with a width. Warns if the value does not
    /// fit.
    pub(super) fn integer_as(
        &mut self,
        from: Expression,
        to: &Type,
        warn: bool,
    ) -> Checked<Expression> {
        let Some(Value::Integer(value)) = from.constant() else {
            return self.wrong(from.span, "this number is not known when the program is compiled");
        };
        if let (true, Some((least, greatest))) = (warn, range(to)) {
            // -1 is a common spelling of all ones.
            let half: BigInt = (&greatest + 1) / 2;
            let least = if least == BigInt::ZERO { -half } else { least };
            if !(least..=greatest).contains(value) {
                let (wanted, rest) = (self.describe(to), wrap(value.clone(), to));
                let diagnostic =
                    Diagnostic::warning(from.span, format!("{value} does not fit {wanted}"));
                self.problems.add(diagnostic.label(format!("it is truncated to {rest}")));
            }
        }
        let value = wrap(value.clone(), to);
        Ok(constant(from.span, to.clone(), value))
    }

    /// Converts `{a, b}` to a record, a tuple or a stack.
    fn list_as(&mut self, fields: Vec<Expression>, span: Span, to: &Type) -> Checked<Expression> {
        let types = self.program.parts(to);
        if types.len() != fields.len() {
            let what = self.describe(to);
            let diagnostic = Diagnostic::error(span, format!("{what} has {} fields", types.len()));
            return self.refuse(diagnostic.label(format!("{} are given", fields.len())));
        }
        let converted: Vec<_> =
            fields.into_iter().zip(&types).map(|(field, of)| self.convert(field, of)).collect();
        let fields = converted.into_iter().collect::<Checked<Vec<_>>>()?;
        Ok(Expression { span, of: to.clone(), kind: ExpressionKind::Fields(fields) })
    }

    /// Converts one of the operands, so that both have the same type.
    pub(super) fn harmonise(
        &mut self,
        left: Expression,
        right: Expression,
    ) -> Checked<(Expression, Expression)> {
        if left.of == right.of {
            return Ok((left, right));
        }
        let is_list = |one: &Expression| matches!(one.kind, ExpressionKind::Fields(_));
        let (left_number, right_number) = (self.number(&left.of), self.number(&right.of));
        if left.of == Type::Integer && right_number.is_bits() {
            return Ok((self.convert(left, &right_number)?, self.as_number(right)));
        }
        if right.of == Type::Integer && left_number.is_bits() {
            let right = self.convert(right, &left_number)?;
            return Ok((self.as_number(left), right));
        }
        if is_list(&left) && !is_list(&right) {
            let of = right.of.clone();
            return Ok((self.convert(left, &of)?, right));
        }
        // A new type (`type`) is not converted to its underlying type.
        if matches!(left.of, Type::Enum(_)) && left_number == right.of {
            return Ok((self.as_number(left), right));
        }
        let of = left.of.clone();
        let right = self.convert(right, &of)?;
        Ok((left, right))
    }

    /// Returns the underlying type of a serializable enumeration; other types are returned
    /// unchanged.
    fn number(&self, of: &Type) -> Type {
        if matches!(of, Type::Enum(_)) { self.representation(of) } else { of.clone() }
    }

    /// Converts a value of a serializable enumeration to its underlying type.
    pub(super) fn as_number(&self, value: Expression) -> Expression {
        let number = self.number(&value.of);
        if number == value.of { value } else { self.as_type(value, &number) }
    }
}
