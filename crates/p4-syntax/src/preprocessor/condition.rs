//! Conditions of `#if`.

use super::Preprocessor;
use crate::lexer::{Kind, Token};
use crate::number;
use crate::source::Span;

/// Maximum nesting depth of a condition.
const MAX_DEPTH: usize = 100;

/// Binary operators, from lowest to highest precedence.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Preprocessor<'_> {
    /// Evaluates the condition of `#if`, `#ifdef` or `#ifndef`. Reports an invalid condition and
    /// returns false.
    pub(super) fn condition(&mut self, word: &str, span: Span, line: &[Token]) -> bool {
        self.flush();
        if word != "if" {
            return match line {
                [name, ..] if name.kind == Kind::Word => {
                    self.macros.contains_key(&name.text) == (word == "ifdef")
                }
                _ => {
                    self.error(span, format!("`#{word}` needs a macro's name"));
                    false
                }
            };
        }
        let Some(known) = self.without_defined(line) else { return false };
        let tokens = self.expand_all(known);
        let mut condition = Condition { tokens: &tokens, at: 0, depth: 0, idle: false };
        let value = condition.binary(0).and_then(|value| match tokens.get(condition.at) {
            None => Ok(value),
            Some(more) => Err((more.span, format!("`{}` was not expected here", more.text))),
        });
        match value {
            Ok(value) => value != 0,
            Err((place, message)) => {
                self.error(if place == Span::default() { span } else { place }, message);
                false
            }
        }
    }

    /// Replaces each `defined` by 1 or 0. Its operand is not expanded.
    fn without_defined(&mut self, line: &[Token]) -> Option<Vec<Token>> {
        let mut out = Vec::new();
        let mut rest = line;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            if !first.is("defined") {
                out.push(first.clone());
                continue;
            }
            let name = match rest {
                [open, name, close, ..] if open.is("(") && close.is(")") => {
                    rest = &rest[3..];
                    name
                }
                [name, ..] => {
                    rest = &rest[1..];
                    name
                }
                [] => first,
            };
            if name.kind != Kind::Word || name == first {
                self.error(first.span, "`defined` needs a macro's name");
                return None;
            }
            let known = if self.macros.contains_key(&name.text) { "1" } else { "0" };
            out.push(Token { kind: Kind::Integer, text: known.into(), ..first.clone() });
        }
        Some(out)
    }
}

type Value = Result<i64, (Span, String)>;

/// Evaluation of a condition, in 64 bits.
struct Condition<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    /// The value of the current part is unused. Only its syntax matters, so a division by an
    /// undefined name, for example, is not an error.
    idle: bool,
}

impl Condition<'_> {
    /// Returns the next operator, its precedence level and its number of tokens, if its precedence
    /// is at least `loosest`.
    fn operator(&self, loosest: usize) -> Option<(&'static str, usize, usize)> {
        let next = self.tokens.get(self.at)?;
        let behind = self.tokens.get(self.at + 1);
        // The lexer splits `>>` into two tokens.
        let shift = next.is(">") && behind.is_some_and(|b| b.is(">") && !b.spaced);
        let text = if shift { ">>" } else { &*next.text };
        LEVELS.iter().enumerate().skip(loosest).find_map(|(level, operators)| {
            let found = operators.iter().find(|operator| **operator == text)?;
            Some((*found, level, if shift { 2 } else { 1 }))
        })
    }

    fn binary(&mut self, loosest: usize) -> Value {
        let mut left = self.unary()?;
        while let Some((operator, level, tokens)) = self.operator(loosest) {
            let span = self.tokens[self.at].span;
            self.at += tokens;
            let settled = matches!((operator, left != 0), ("||", true) | ("&&", false));
            let right = self.unless(settled, |side| side.binary(level + 1))?;
            left = match computed(operator, left, right, span) {
                Err(_) if self.idle => 0,
                value => value?,
            };
        }
        if loosest == 0 && self.take("?") {
            return self.nested(|condition| {
                let yes = condition.unless(left == 0, |branch| branch.binary(0))?;
                condition.expect(":")?;
                let no = condition.unless(left != 0, |branch| branch.binary(0))?;
                Ok(if left != 0 { yes } else { no })
            });
        }
        Ok(left)
    }

    /// Evaluates a part whose value is unused if `idle`.
    fn unless(&mut self, idle: bool, part: impl FnOnce(&mut Self) -> Value) -> Value {
        let around = self.idle;
        self.idle |= idle;
        let value = part(self);
        self.idle = around;
        value
    }

    /// Evaluates a recursive part, after its first token.
    fn nested(&mut self, part: impl FnOnce(&mut Self) -> Value) -> Value {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let span = self.tokens[self.at - 1].span;
            return Err((span, "the condition is nested too deeply".into()));
        }
        let value = part(self);
        self.depth -= 1;
        value
    }

    fn unary(&mut self) -> Value {
        let Some(token) = self.tokens.get(self.at) else {
            return Err((
                self.tokens.last().map_or(Span::default(), |last| last.span),
                "the condition ends where a value was expected".into(),
            ));
        };
        self.at += 1;
        self.nested(|condition| condition.operand(token))
    }

    /// Evaluates an operand that starts with `token`, which is already consumed.
    fn operand(&mut self, token: &Token) -> Value {
        match (token.kind, &*token.text) {
            (Kind::Integer, text) => {
                let value = number::parse(text).ok().map(|integer| i64::try_from(integer.value));
                match value {
                    Some(Ok(value)) => Ok(value),
                    Some(Err(_)) if self.idle => Ok(0),
                    _ => Err((token.span, format!("`{text}` is not a 64-bit number"))),
                }
            }
            // Undefined names are 0, except `true`.
            (Kind::Word, word) => Ok((word == "true").into()),
            (_, "!") => self.unary().map(|value| i64::from(value == 0)),
            (_, "-") => self.unary().map(i64::wrapping_neg),
            (_, "~") => self.unary().map(|value| !value),
            (_, "+") => self.unary(),
            (_, "(") => {
                let value = self.binary(0)?;
                self.expect(")").map(|()| value)
            }
            (_, other) => Err((token.span, format!("`{other}` is not a value"))),
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let is = self.tokens.get(self.at).is_some_and(|token| token.is(text));
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, text: &str) -> Result<(), (Span, String)> {
        if self.take(text) {
            return Ok(());
        }
        let at = self.tokens.get(self.at).or(self.tokens.last());
        Err((at.map_or(Span::default(), |token| token.span), format!("expected `{text}`")))
    }
}

fn computed(operator: &str, left: i64, right: i64, span: Span) -> Value {
    let shift = u32::try_from(right).unwrap_or(64);
    Ok(match operator {
        "||" => (left != 0 || right != 0).into(),
        "&&" => (left != 0 && right != 0).into(),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => (left == right).into(),
        "!=" => (left != right).into(),
        "<" => (left < right).into(),
        ">" => (left > right).into(),
        "<=" => (left <= right).into(),
        ">=" => (left >= right).into(),
        "<<" => left.checked_shl(shift).unwrap_or(0),
        ">>" => left.checked_shr(shift).unwrap_or(if left < 0 { -1 } else { 0 }),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        _ if right == 0 => return Err((span, "a division by 0".into())),
        "/" => left.wrapping_div(right),
        _ => left.wrapping_rem(right),
    })
}
