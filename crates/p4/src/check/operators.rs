//! Operators, casts and slices (P4_16 specification, sections 8.5 to 8.11).

use num_bigint::Sign;
use num_traits::ToPrimitive;
use p4_syntax::ast;
use p4_syntax::diagnostic::Diagnostic;
use p4_syntax::source::Span;

use super::{Checked, Checker, Reported};
use crate::ir::arithmetic::{self, Undefined};
use crate::ir::{Binary, Expression, ExpressionKind, Type, Unary, Value};

const BELOW_ZERO: &str = "this shifts by less than zero";

impl Checker<'_> {
    pub(super) fn unary(
        &mut self,
        span: Span,
        operator: Unary,
        value: &ast::Expression,
    ) -> Checked<Expression> {
        let value = self.expression(value, None)?;
        let value = self.as_number(value);
        let fits = match operator {
            Unary::Not => value.of == Type::Bool,
            Unary::Complement => value.of.is_bits(),
            Unary::Minus | Unary::Plus => value.of.is_bits() || value.of == Type::Integer,
        };
        if !fits {
            return self.not_for(span, &value);
        }
        let of = value.of.clone();
        if let Some(known) = value.constant() {
            let result = arithmetic::unary(operator, known, &of);
            return self.known(span, of, result);
        }
        Ok(Expression { span, of, kind: ExpressionKind::Unary(operator, Box::new(value)) })
    }

    fn not_for<T>(&mut self, span: Span, value: &Expression) -> Checked<T> {
        let what = self.describe(&value.of);
        let diagnostic = Diagnostic::error(span, format!("this operator is not for {what}"));
        self.refuse(if value.of.is_bits() {
            diagnostic.help("`~` turns bits around, and `… == 0` compares")
        } else {
            diagnostic
        })
    }

    pub(super) fn binary_of(
        &mut self,
        span: Span,
        operator: Binary,
        left: &ast::Expression,
        right: &ast::Expression,
    ) -> Checked<Expression> {
        let left = self.expression(left, None);
        let wanted = left.as_ref().ok().map(|left| left.of.clone());
        // A list in braces takes the type of the other operand.
        let wanted =
            wanted.filter(|of| matches!(of, Type::Record(_) | Type::Stack(..) | Type::Tuple(_)));
        let right = self.expression(right, wanted.as_ref());
        self.binary(span, operator, left?, right?)
    }

    pub(super) fn binary(
        &mut self,
        span: Span,
        operator: Binary,
        left: Expression,
        right: Expression,
    ) -> Checked<Expression> {
        use Binary as B;
        let (left, right) = match operator {
            B::Mask | B::Range => {
                let message = "a set of values belongs in `select`, a key's entry or a value set";
                return self.wrong(span, message);
            }
            B::ShiftLeft | B::ShiftRight => self.shift_operands(left, right)?,
            B::Concatenate => (self.as_number(left), self.as_number(right)),
            _ => self.harmonise(left, right)?,
        };
        let bits = left.of.is_bits() && right.of.is_bits();
        let numbers = bits || (left.of == Type::Integer && right.of == Type::Integer);
        let (fits, of) = match operator {
            B::Equal | B::NotEqual => (self.is_comparable(&left.of), Type::Bool),
            B::LogicalAnd | B::LogicalOr => (left.of == Type::Bool, Type::Bool),
            B::Less | B::LessOrEqual | B::Greater | B::GreaterOrEqual => (numbers, Type::Bool),
            B::AddSaturating | B::SubtractSaturating => (bits, left.of.clone()),
            B::Concatenate => (bits, self.concatenated(span, &left.of, &right.of)?),
            B::Divide | B::Modulo => {
                let signed = matches!(left.of, Type::Bits { signed: true, .. });
                (numbers && !signed, left.of.clone())
            }
            B::ShiftLeft | B::ShiftRight => {
                let number = |of: &Type| of.is_bits() || *of == Type::Integer;
                (number(&left.of) && number(&right.of), left.of.clone())
            }
            _ => (numbers, left.of.clone()),
        };
        if !fits {
            let (one, other) = (self.describe(&left.of), self.describe(&right.of));
            let diagnostic = Diagnostic::error(span, "this operator is not for these types");
            return self.refuse(diagnostic.label(format!("{one} and {other}")));
        }
        if let (Some(one), Some(other)) = (left.constant(), right.constant()) {
            let result = arithmetic::binary(operator, (one, &left.of), (other, &right.of));
            return self.known(span, of, result);
        }
        if matches!(operator, B::Divide | B::Modulo)
            && right.constant() == Some(&Value::Integer(0.into()))
        {
            return self.known(span, of, Err(Undefined::DivisionByZero));
        }
        let kind = ExpressionKind::Binary(operator, Box::new(left), Box::new(right));
        Ok(Expression { span, of, kind })
    }

    fn is_comparable(&self, of: &Type) -> bool {
        match of {
            Type::Void | Type::Extern(..) | Type::Any | Type::MatchKind => false,
            Type::Tuple(all) => all.iter().all(|one| self.is_comparable(one)),
            Type::Record(_) => self.program.parts(of).iter().all(|one| self.is_comparable(one)),
            _ => true,
        }
    }

    fn concatenated(&mut self, span: Span, left: &Type, right: &Type) -> Checked<Type> {
        match (left, right) {
            (Type::Bits { width, signed }, Type::Bits { width: low, .. }) => {
                let width = width + low;
                if width > super::types::MAX_WIDTH {
                    return self.wrong(span, format!("{width} bits are too many"));
                }
                Ok(Type::Bits { width, signed: *signed })
            }
            // The caller reports the invalid operand types.
            _ => Ok(left.clone()),
        }
    }

    fn shift_operands(
        &mut self,
        left: Expression,
        right: Expression,
    ) -> Checked<(Expression, Expression)> {
        let (left, right) = (self.as_number(left), self.as_number(right));
        if matches!(right.of, Type::Bits { signed: true, .. }) {
            let diagnostic = Diagnostic::error(right.span, "a shift by a signed number");
            return self
                .refuse(diagnostic.help("cast it to bit<…>: a shift has no direction to choose"));
        }
        if matches!(right.constant(), Some(Value::Integer(by)) if by.sign() == Sign::Minus) {
            return self.refuse(Diagnostic::error(right.span, BELOW_ZERO));
        }
        if left.of == Type::Integer && right.constant().is_none() {
            let diagnostic =
                Diagnostic::error(left.span, "this number has no width to be shifted in");
            return self.refuse(diagnostic.help("give it one, as 32w1 has"));
        }
        Ok((left, right))
    }

    /// Returns the result of constant folding, or reports the error.
    fn known(
        &mut self,
        span: Span,
        of: Type,
        result: Result<Value, Undefined>,
    ) -> Checked<Expression> {
        let why = match result {
            Ok(value) => return Ok(super::constant(span, of, value)),
            Err(Undefined::DivisionByZero) => "this divides by zero",
            Err(Undefined::NegativeDivision) => "numbers below zero are not divided in P4",
            Err(Undefined::NegativeShift) => BELOW_ZERO,
            Err(Undefined::TooLarge) => "this number is too large",
            Err(Undefined::Types) => "this operator is not for these types",
        };
        self.wrong(span, why)
    }

    /// Checks `(TYPE) value`.
    pub(super) fn cast(
        &mut self,
        span: Span,
        to: &ast::Type,
        value: &ast::Expression,
    ) -> Checked<Expression> {
        let to = self.type_of(to);
        let wanted = to.as_ref().ok().filter(|of| !of.is_bits()).cloned();
        let value = self.expression(value, wanted.as_ref());
        let (to, value) = (to?, value?);
        if value.of == to {
            return Ok(Expression { span, ..value });
        }
        if value.of == Type::Integer && to.is_bits() {
            return self.integer_as(Expression { span, ..value }, &to, false);
        }
        if matches!(value.kind, ExpressionKind::Fields(_)) {
            return self.convert(value, &to);
        }
        if let (Type::Integer, Type::Bool, Some(Value::Integer(number))) =
            (&value.of, &to, value.constant())
            && number.bits() > 1
        {
            return self.wrong(span, format!("{number} cannot be a `bool`: only 0 and 1 can"));
        }
        if !self.is_cast(&value.of, &to) {
            let (from, what) = (self.describe(&value.of), self.describe(&to));
            let diagnostic = Diagnostic::error(span, format!("{from} cannot be cast to {what}"));
            let both = (self.representation(&value.of), self.representation(&to));
            let help = match both {
                (Type::Bits { width, signed }, Type::Bits { width: other, signed: others })
                    if width != other && signed != others =>
                {
                    "change the width and the sign in two casts"
                }
                _ => return self.refuse(diagnostic),
            };
            return self.refuse(diagnostic.help(help));
        }
        if let Some(known) = value.constant() {
            let known = arithmetic::cast(known, &self.representation(&to));
            return Ok(super::constant(span, to, known));
        }
        if to == Type::Integer && !super::instances::is_made_known(&value) {
            let diagnostic =
                Diagnostic::error(span, "numbers of any precision are known beforehand");
            return self
                .refuse(diagnostic.help("cast it to a width that is wide enough: (bit<32>)…"));
        }
        Ok(Expression { span, of: to, kind: ExpressionKind::Cast(Box::new(value)) })
    }

    /// Returns true if the cast is allowed (section 8.11.1).
    fn is_cast(&self, from: &Type, to: &Type) -> bool {
        let named = |of: &Type| matches!(of, Type::Enum(_) | Type::New(_));
        if (named(from) || named(to))
            && (self.representation(from), self.representation(to)) != (from.clone(), to.clone())
        {
            let (from, to) = (self.representation(from), self.representation(to));
            return from == to || self.is_cast(&from, &to);
        }
        match (from, to) {
            // Only for constants; the caller checks that.
            (Type::Bits { .. }, Type::Integer) => true,
            (Type::Bits { width: 1, signed: false }, Type::Bool)
            | (Type::Bool, Type::Bits { width: 1, signed: false })
            | (Type::Integer, Type::Bits { .. } | Type::Bool) => true,
            (Type::Bits { width, signed }, Type::Bits { width: other, signed: others }) => {
                width == other || signed == others
            }
            _ => false,
        }
    }

    /// Checks `left[high:low]`.
    pub(super) fn slice(
        &mut self,
        span: Span,
        of: &ast::Expression,
        (high, low): (&ast::Expression, &ast::Expression),
    ) -> Checked<Expression> {
        let of = self.expression(of, None)?;
        let of = self.as_number(of);
        let width = match of.of {
            Type::Bits { width, .. } => width,
            // An arbitrary-precision integer has any number of bits (section 8.8).
            Type::Integer => super::types::MAX_WIDTH,
            _ => {
                let what = self.describe(&of.of);
                return self.wrong(span, format!("{what} has no bits to select"));
            }
        };
        let high_at = self.known_bit(high)?;
        let low_at = self.known_bit(low)?;
        if high_at >= width || low_at > high_at {
            let diagnostic =
                Diagnostic::error(high.span.to(low.span), "this slice is out of range");
            let last = width.saturating_sub(1);
            return self
                .refuse(diagnostic.label(format!("expected [high:low] within {last} to 0")));
        }
        let to = Type::bit(high_at - low_at + 1);
        if let Some(Value::Integer(value)) = of.constant() {
            let part = arithmetic::slice(value, high_at, low_at);
            return Ok(super::constant(span, to, part));
        }
        Ok(Expression { span, of: to, kind: ExpressionKind::Slice(Box::new(of), high_at, low_at) })
    }

    fn known_bit(&mut self, written: &ast::Expression) -> Checked<u32> {
        let found = self.expression(written, None)?;
        match found.constant() {
            Some(Value::Integer(value)) => match value.to_u32() {
                Some(bit) => Ok(bit),
                None => self.wrong(written.span, format!("{value} is the number of no bit")),
            },
            _ => {
                let message = "which bits are meant is known when the program is compiled";
                self.wrong(written.span, message)
            }
        }
    }

    /// Checks `condition ? yes : no`.
    pub(super) fn choose(
        &mut self,
        span: Span,
        condition: &ast::Expression,
        (yes, no): (&ast::Expression, &ast::Expression),
        wanted: Option<&Type>,
    ) -> Checked<Expression> {
        let condition = self.expression_as(condition, &Type::Bool);
        let (yes, no) = (self.expression(yes, wanted), self.expression(no, wanted));
        let (condition, yes, no) = (condition?, yes?, no?);
        let (yes, no) = match wanted {
            Some(of) => (self.convert(yes, of)?, self.convert(no, of)?),
            None => self.harmonise(yes, no)?,
        };
        match condition.constant() {
            Some(Value::Bool(true)) => return Ok(yes),
            Some(Value::Bool(false)) => return Ok(no),
            Some(_) => return Err(Reported),
            None => {}
        }
        if yes.of == Type::Integer {
            let diagnostic = Diagnostic::error(span, "cannot infer the width of this");
            return self.refuse(diagnostic.help("give one of both a width, as 8w1 has"));
        }
        let of = yes.of.clone();
        let kind = ExpressionKind::Choose(Box::new(condition), Box::new(yes), Box::new(no));
        Ok(Expression { span, of, kind })
    }
}
