//! A recursive descent parser (P4_16 specification, appendix G).
//!
//! After a syntax error, the parser reports it and recovers after the statement or declaration, so
//! one run reports many errors. Where the grammar needs more lookahead than one token (declaration
//! or call, type argument or comparison), the parser backtracks.

mod declarations;
mod expressions;
mod hints;
mod objects;
mod statements;
mod tables;
#[cfg(test)]
mod tests;
mod types;

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::{Argument, Name, Program};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Kind, Token};
use crate::source::{Sources, Span};

/// Maximum nesting depth, which bounds the compiler's stack use.
const MAX_NESTING: usize = 100;
/// Maximum height of an expression tree. `a + b + c` has no nesting, but a height of two operators.
const MAX_HEIGHT: usize = 500;

/// Keywords, which cannot be identifiers.
const KEYWORDS: [&str; 41] = [
    "action",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "typedef",
    "varbit",
    "value_set",
    "void",
    "_",
    "abstract",
];

/// The error has already been reported.
pub(super) struct Reported;

type Parsed<T> = Result<T, Reported>;

/// Parses tokens to a program. The last token is [`Kind::End`].
pub(crate) fn parse(tokens: &[Token], sources: &Sources, problems: &mut Diagnostics) -> Program {
    let mut parser = Parser {
        tokens,
        sources,
        at: 0,
        begun: 0,
        unclosed: None,
        problems,
        nesting: 0,
        height: 0,
        tallest: 0,
        types: HashSet::new(),
        no_types: HashSet::new(),
        no_casts: HashSet::new(),
    };
    let mut program = Program::default();
    while parser.next().kind != Kind::End {
        let from = parser.at;
        parser.begun = from;
        match parser.top_declaration() {
            Ok(Some(declaration)) => program.declarations.push(declaration),
            Ok(None) => {}
            Err(Reported) => parser.skip(from),
        }
    }
    program
}

struct Parser<'p> {
    tokens: &'p [Token],
    sources: &'p Sources,
    at: usize,
    /// Start of the current statement or declaration.
    begun: usize,
    /// Token before which a missing brace has been reported.
    unclosed: Option<usize>,
    problems: &'p mut Diagnostics,
    nesting: usize,
    /// Height of the last expression's tree, and the maximum height among its siblings.
    height: usize,
    tallest: usize,
    /// Names of declared types, regardless of their scope.
    types: HashSet<Arc<str>>,
    /// Tokens where type arguments did not parse. Retrying them in nested attempts would take
    /// exponential time.
    no_types: HashSet<usize>,
    /// The same for casts: the contents of the parentheses are parsed again as a value.
    no_casts: HashSet<usize>,
}

impl<'p> Parser<'p> {
    // ---- tokens ----

    fn next(&self) -> &'p Token {
        self.look(0)
    }

    fn look(&self, ahead: usize) -> &'p Token {
        // The last token is `End`. Lookahead stops there.
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn at(&self, text: &str) -> bool {
        self.next().is(text)
    }

    fn advance(&mut self) -> &'p Token {
        let token = self.next();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn take(&mut self, text: &str) -> bool {
        let is = self.at(text);
        if is {
            self.advance();
        }
        is
    }

    /// Returns the source span of the last consumed token.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// Returns the source span from `start` to the last consumed token.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        if self.at(text) {
            return Ok(self.advance().span);
        }
        // Report a missing terminator after the previous token, not at the next one.
        let is_behind = self.next().begins_line || text == ";" && self.at("}");
        if matches!(text, ";" | ")" | "]" | "{" | "}" | ">") && self.at > 0 && is_behind {
            let end = self.last_span().end;
            let behind = Span { start: end.saturating_sub(1), end };
            let missing = Diagnostic::error(behind, format!("`{text}` is missing"));
            let missing = missing.label(format!("expected `{text}` after this"));
            self.problems.add(match self.hint(&format!("`{text}`")) {
                Some(help) => missing.help(help),
                None => missing,
            });
            return Err(Reported);
        }
        Err(self.unexpected(&format!("`{text}`")))
    }

    /// Reports an unexpected token.
    fn unexpected(&mut self, wanted: &str) -> Reported {
        let next = self.next();
        let found = match next.kind {
            Kind::End => "the program ends here".to_owned(),
            _ => format!("`{}` was not expected here", next.text),
        };
        let diagnostic = Diagnostic::error(next.span, found).label(format!("expected {wanted}"));
        self.problems.add(match self.hint(wanted) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
        Reported
    }

    fn is_name(token: &Token) -> bool {
        token.kind == Kind::Word && !KEYWORDS.contains(&&*token.text)
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        let next = self.next();
        if Self::is_name(next) {
            self.advance();
            return Ok(Name { text: next.text.clone(), span: next.span });
        }
        if next.kind == Kind::Word {
            let message = format!("`{}` is a reserved word, not a name", next.text);
            let diagnostic =
                Diagnostic::error(next.span, message).label(format!("expected {what}"));
            let help = self.hint(what).or_else(|| Self::other_name(&next.text, what));
            self.problems.add(match help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            });
            return Err(Reported);
        }
        Err(self.unexpected(what))
    }

    // ---- backtracking, nesting, recovery ----

    /// Tries to parse a part. On failure, restores the position and discards the errors.
    fn attempt<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Option<T> {
        let (at, mark) = (self.at, self.problems.mark());
        match part(self) {
            Ok(found) => Some(found),
            Err(Reported) => {
                self.at = at;
                self.problems.forget(mark);
                None
            }
        }
    }

    /// Parses a recursive part of the grammar.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            return self.too_deep();
        }
        self.nesting += 1;
        let found = part(self);
        self.nesting -= 1;
        found
    }

    fn too_deep<T>(&mut self) -> Parsed<T> {
        let message = format!("this is nested more than {MAX_NESTING} deep");
        self.problems.add(Diagnostic::error(self.next().span, message));
        Err(Reported)
    }

    /// Recovers from an error: skips the statement or declaration that starts at `from`.
    fn skip(&mut self, from: usize) {
        let mut depth = 0_usize;
        // Count the braces that are open at the error.
        for token in &self.tokens[from..self.at] {
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth = depth.saturating_sub(1);
            }
        }
        loop {
            let next = self.next();
            if next.kind == Kind::End || (depth == 0 && next.is("}") && self.at > from) {
                // End of the enclosing block; at top level there is none.
                if next.is("}") && self.nesting == 0 {
                    self.advance();
                }
                return;
            }
            self.advance();
            if next.is("{") {
                depth += 1;
            } else if next.is("}") {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return;
                }
            } else if next.is(";") && depth == 0 {
                return;
            }
        }
    }

    // ---- lists ----

    /// Parses a comma-separated list up to and including `close`.
    fn list<T>(
        &mut self,
        close: &str,
        mut part: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut found = Vec::new();
        if self.take(close) {
            return Ok(found);
        }
        loop {
            found.push(part(self)?);
            if !self.take(",") {
                self.expect(close)?;
                return Ok(found);
            }
        }
    }

    /// Parses a list in braces. Malformed members are reported and omitted.
    fn members<T>(&mut self, part: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.braced(false, part)
    }

    /// Parses a list in braces. `holds_more`: tables, actions and states are allowed.
    fn braced<T>(
        &mut self,
        holds_more: bool,
        mut part: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut open = self.at;
        if let Err(reported) = self.expect("{") {
            if !self.begins_body() {
                return Err(reported);
            }
            open = open.saturating_sub(1);
        }
        // The construct that continues after the braces also started before them.
        let begun = self.begun;
        let found = self.nested(|parser| {
            let mut found = Vec::new();
            while parser.goes_on(open, holds_more) {
                let from = parser.at;
                parser.begun = from;
                match part(parser) {
                    Ok(member) => found.push(member),
                    Err(Reported) => parser.skip(from),
                }
            }
            parser.take("}");
            Ok(found)
        });
        self.begun = begun;
        found
    }

    /// Parses `(a, name = b, _)`.
    fn arguments(&mut self) -> Parsed<Vec<Argument>> {
        self.expect("(")?;
        self.list(")", |parser| {
            let name = if Self::is_name(parser.next()) && parser.look(1).is("=") {
                let name = parser.name("a parameter's name")?;
                parser.expect("=")?;
                Some(name)
            } else {
                None
            };
            let value = if parser.take("_") { None } else { Some(parser.expression()?) };
            Ok(Argument { name, value })
        })
    }
}
