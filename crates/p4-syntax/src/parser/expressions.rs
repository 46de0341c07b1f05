//! Expressions. Unlike in C, bitwise operators have higher precedence than comparisons.

use super::{MAX_HEIGHT, Parsed, Parser, Reported};
use crate::ast::{Binary, Expression, ExpressionKind as Kind, Type, TypeKind, Unary};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Kind as TokenKind, Token};
use crate::number::{self, BadInteger, MAX_WIDTH};
use crate::source::Span;

/// Binary operators, from lowest to highest precedence.
const LEVELS: [&[(&str, Binary)]; 10] = [
    &[("||", Binary::LogicalOr)],
    &[("&&", Binary::LogicalAnd)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[
        ("++", Binary::Concatenate),
        ("+", Binary::Add),
        ("-", Binary::Subtract),
        ("|+|", Binary::AddSaturating),
        ("|-|", Binary::SubtractSaturating),
    ],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Modulo)],
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.nested(|parser| {
            let condition = parser.binary(0)?;
            if !parser.take("?") {
                parser.tallest = parser.tallest.max(parser.height);
                return Ok(condition);
            }
            let height = parser.height;
            let yes = parser.expression()?;
            let height = height.max(parser.height);
            parser.expect(":")?;
            let no = parser.expression()?;
            parser.grow(height.max(parser.height))?;
            parser.tallest = parser.tallest.max(parser.height);
            let span = condition.span.to(no.span);
            let kind = Kind::Choose(Box::new(condition), Box::new(yes), Box::new(no));
            Ok(Expression { span, kind })
        })
    }

    /// Parses a keyset of a `select` case or a table entry: `_`, `default`, `value`, `from .. to`
    /// or `value &&& mask`.
    pub(super) fn set(&mut self) -> Parsed<Expression> {
        let span = self.next().span;
        for (word, kind) in [("_", Kind::DontCare), ("default", Kind::Default), ("...", Kind::Rest)]
        {
            if self.take(word) {
                return Ok(Expression { span, kind });
            }
        }
        let left = self.expression()?;
        for (mark, operator) in [("&&&", Binary::Mask), ("..", Binary::Range)] {
            if self.take(mark) {
                let right = self.expression()?;
                return Ok(joined(operator, left, right));
            }
        }
        Ok(left)
    }

    /// Parses one keyset for each value: `(a, b)`, or a single one without parentheses. `:`
    /// follows.
    pub(super) fn sets(&mut self) -> Parsed<Vec<Expression>> {
        let several = |parser: &mut Self| {
            parser.expect("(")?;
            let sets = parser.list(")", Self::set)?;
            if parser.at(":") { Ok(sets) } else { Err(Reported) }
        };
        match self.attempt(several) {
            Some(sets) => Ok(sets),
            None => Ok(vec![self.set()?]),
        }
    }

    /// Returns the next operator, its precedence level and its number of tokens, if its precedence
    /// is at least `loosest`.
    fn operator(&self, loosest: usize) -> Option<(Binary, usize, usize)> {
        let (next, behind) = (self.next(), self.look(1));
        let adjacent = next.is(">") && !behind.spaced;
        let (text, tokens) = match () {
            // The lexer does not join `>>`, because it may also close two lists of type arguments.
            () if adjacent && behind.is(">") => (">>", 2),
            // `>>=`.
            () if adjacent && behind.is(">=") => return None,
            () if next.kind == TokenKind::Mark => (&*next.text, 1),
            () => return None,
        };
        LEVELS.iter().enumerate().skip(loosest).find_map(|(level, operators)| {
            let (_, found) = operators.iter().find(|(operator, _)| *operator == text)?;
            Some((*found, level, tokens))
        })
    }

    fn binary(&mut self, loosest: usize) -> Parsed<Expression> {
        let mut left = self.unary()?;
        while let Some((operator, level, tokens)) = self.operator(loosest) {
            self.at += tokens;
            let height = self.height;
            let right = self.binary(level + 1)?;
            left = joined(operator, left, right);
            self.grow(height.max(self.height))?;
        }
        Ok(left)
    }

    /// Adds a level to the expression tree. The height is bounded, because recursive passes over
    /// the tree use the stack.
    fn grow(&mut self, below: usize) -> Parsed<()> {
        self.height = below + 1;
        if self.height > MAX_HEIGHT {
            let message =
                format!("this expression has more than {MAX_HEIGHT} operators upon each other");
            self.problems.add(Diagnostic::error(self.last_span(), message));
            return Err(Reported);
        }
        Ok(())
    }

    /// Parses sibling expressions. Returns the height of the tallest one too.
    fn beside<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<(T, usize)> {
        let outside = std::mem::take(&mut self.tallest);
        let found = part(self)?;
        let tallest = std::mem::replace(&mut self.tallest, outside);
        Ok((found, tallest))
    }

    fn unary(&mut self) -> Parsed<Expression> {
        let start = self.next().span;
        let operators =
            [("!", Unary::Not), ("~", Unary::Complement), ("-", Unary::Minus), ("+", Unary::Plus)];
        if let Some((_, operator)) = operators.into_iter().find(|(mark, _)| self.at(mark)) {
            self.advance();
            let value = self.nested(Self::unary)?;
            self.grow(self.height)?;
            let kind = Kind::Unary(operator, Box::new(value));
            return Ok(Expression { span: self.since(start), kind });
        }
        if let Some(to) = self.cast() {
            let value = self.nested(Self::unary)?;
            self.grow(self.height)?;
            let kind = Kind::Cast(to, Box::new(value));
            return Ok(Expression { span: self.since(start), kind });
        }
        self.postfix()
    }

    /// Parses `(TYPE)` of a cast, if it is next.
    fn cast(&mut self) -> Option<Type> {
        if !self.at("(") || self.no_casts.contains(&self.at) {
            return None;
        }
        let at = self.at;
        let found = self.attempt(Self::cast_type);
        if found.is_none() {
            self.no_casts.insert(at);
        }
        found
    }

    fn cast_type(&mut self) -> Parsed<Type> {
        self.expect("(")?;
        let to = self.parse_type()?;
        self.expect(")")?;
        let is_type = match &to.kind {
            TypeKind::Named(name, arguments) => {
                !arguments.is_empty() || self.types.contains(&name.text) || self.begins_value()
            }
            TypeKind::Stack(..) => false,
            _ => true,
        };
        if is_type { Ok(to) } else { Err(Reported) }
    }

    /// Returns true if the next token must start a value.
    fn begins_value(&self) -> bool {
        let next = self.next();
        match next.kind {
            TokenKind::Word => Self::is_name(next) || matches!(&*next.text, "true" | "false"),
            TokenKind::Integer | TokenKind::Text => true,
            TokenKind::Mark => matches!(&*next.text, "(" | "{" | "!" | "~"),
            TokenKind::End => false,
        }
    }

    fn postfix(&mut self) -> Parsed<Expression> {
        let start = self.next().span;
        let mut value = self.primary()?;
        loop {
            let height = self.height;
            let of = Box::new;
            let (kind, beside) = if self.take(".") {
                let name = self.member()?;
                (Kind::Member(of(value), name), 0)
            } else if self.take("[") {
                let ((high, low), tallest) = self.beside(Self::index)?;
                match low {
                    Some(low) => (Kind::Slice(of(value), of(high), of(low)), tallest),
                    None => (Kind::Index(of(value), of(high)), tallest),
                }
            } else if self.at("(") {
                let (arguments, tallest) = self.beside(Self::arguments)?;
                (Kind::Call(of(value), Vec::new(), arguments), tallest)
            } else if self.at("<") {
                let Some(types) = self.called_with_types() else {
                    self.height = height;
                    return Ok(value);
                };
                let (arguments, tallest) = self.beside(Self::arguments)?;
                (Kind::Call(of(value), types, arguments), tallest)
            } else {
                return Ok(value);
            };
            value = Expression { span: self.since(start), kind };
            self.grow(height.max(beside))?;
        }
    }

    /// Parses `index]` or `high:low]`.
    fn index(&mut self) -> Parsed<(Expression, Option<Expression>)> {
        let high = self.expression()?;
        let low = if self.take(":") { Some(self.expression()?) } else { None };
        self.expect("]")?;
        Ok((high, low))
    }

    /// Parses type arguments, if the parenthesis of a call follows them.
    fn called_with_types(&mut self) -> Option<Vec<Type>> {
        if self.no_types.contains(&self.at) {
            return None;
        }
        let at = self.at;
        let found = self.attempt(|parser| {
            let types = parser.type_arguments()?;
            if parser.at("(") { Ok(types) } else { Err(Reported) }
        });
        if found.is_none() {
            self.no_types.insert(at);
        }
        found
    }

    /// Parses a member name, which may be a keyword: `table.apply`.
    fn member(&mut self) -> Parsed<crate::ast::Name> {
        self.name("a member's name")
    }

    pub(super) fn primary(&mut self) -> Parsed<Expression> {
        let next = self.next();
        let start = next.span;
        let kind = match (next.kind, &*next.text) {
            (TokenKind::Integer, _) => {
                self.advance();
                self.integer(next)?
            }
            (TokenKind::Text, text) => {
                self.advance();
                Kind::String(text.trim_matches('"').into())
            }
            (TokenKind::Word, "true" | "false") => Kind::Bool(&*self.advance().text == "true"),
            (TokenKind::Word, "this") => {
                self.advance();
                Kind::This
            }
            (TokenKind::Word, "error") => {
                self.advance();
                self.expect(".")?;
                Kind::ErrorMember(self.name("an error's name")?)
            }
            (TokenKind::Mark, ".") => {
                self.advance();
                Kind::TopName(self.name("a name")?)
            }
            (TokenKind::Mark, "(") => {
                self.advance();
                let value = self.expression()?;
                self.expect(")")?;
                return Ok(Expression { span: self.since(start), ..value });
            }
            (TokenKind::Mark, "{") => {
                self.advance();
                let (kind, tallest) = self.beside(Self::braces)?;
                self.grow(tallest)?;
                return Ok(Expression { span: self.since(start), kind });
            }
            (TokenKind::Mark, "...") => {
                self.advance();
                Kind::Rest
            }
            _ => Kind::Name(self.name("an expression")?.text),
        };
        self.height = 1;
        Ok(Expression { span: self.since(start), kind })
    }

    /// Parses the contents of braces.
    fn braces(&mut self) -> Parsed<Kind> {
        if self.take("#") {
            self.expect("}")?;
            return Ok(Kind::Invalid);
        }
        if self.take("...") {
            self.expect("}")?;
            return Ok(Kind::Struct(Vec::new(), true));
        }
        if !(Self::is_name(self.next()) && self.look(1).is("=")) {
            let mut values = Vec::new();
            while !self.take("}") {
                let span = self.next().span;
                if self.take("...") {
                    values.push(Expression { span, kind: Kind::Rest });
                    self.expect("}")?;
                    break;
                }
                values.push(self.expression()?);
                if !self.take(",") {
                    self.expect("}")?;
                    break;
                }
            }
            return Ok(Kind::List(values));
        }
        let mut fields = Vec::new();
        loop {
            if self.take("...") {
                self.expect("}")?;
                return Ok(Kind::Struct(fields, true));
            }
            let name = self.name("a field's name")?;
            self.expect("=")?;
            fields.push((name, self.expression()?));
            if !self.take(",") || self.at("}") {
                self.expect("}")?;
                return Ok(Kind::Struct(fields, false));
            }
        }
    }

    fn integer(&mut self, token: &Token) -> Parsed<Kind> {
        let why = match number::parse(&token.text) {
            Ok(integer) => return Ok(Kind::Integer(integer)),
            Err(why) => why,
        };
        let (message, help) = match why {
            BadInteger::Digit(digit) => (
                format!("`{digit}` is not a digit of `{}`", token.text),
                "integers are 10, 0x1F, 0b101, 0o17, and with a width 8w10 or 8s10".to_owned(),
            ),
            BadInteger::Empty => {
                (format!("`{}` has no digits", token.text), "write at least one".to_owned())
            }
            BadInteger::Width => (
                format!("`{}` has a width that cannot be", token.text),
                format!("a width is 0 to {MAX_WIDTH} bits, with a sign from 1"),
            ),
            BadInteger::TooLarge(bits) => {
                (format!("`{}` needs {bits} bits", token.text), "give it a larger width".to_owned())
            }
        };
        self.problems.add(Diagnostic::error(token.span, message).help(help));
        Err(Reported)
    }

    /// Returns the source span of the next token.
    pub(super) fn here(&self) -> Span {
        self.next().span
    }
}

fn joined(operator: Binary, left: Expression, right: Expression) -> Expression {
    let span = left.span.to(right.span);
    Expression { span, kind: Kind::Binary(operator, Box::new(left), Box::new(right)) }
}
