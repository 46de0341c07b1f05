//! Recursive descent over the tokens (P4_16 specification, appendix G).
//!
//! What is wrong is told where it is met, and the parser goes on behind the statement or the
//! declaration: one run tells of many mistakes. Where the grammar needs more than the next token (a
//! declaration or a call, a type argument or a comparison) the parser tries, and comes back.

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

use super::ast::{Argument, Name, Program};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Kind, Token};
use crate::source::{Sources, Span};

/// How deep anything may be nested: the compiler's stack has an end.
const MAX_NESTING: usize = 100;
/// How high the tree of an expression may be: `a + b + c` is nested in nothing, and two operators high.
const MAX_HEIGHT: usize = 500;

/// Words that are no names.
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

/// What is wrong is told already.
pub(super) struct Told;

type Parsed<T> = Result<T, Told>;

/// Makes a program of tokens, of which the last one is [`Kind::End`].
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
            Err(Told) => parser.skip(from),
        }
    }
    program
}

struct Parser<'p> {
    tokens: &'p [Token],
    sources: &'p Sources,
    at: usize,
    /// Where the statement or the declaration begins that is being read.
    begun: usize,
    /// The token in front of which a brace is missing, as was told.
    unclosed: Option<usize>,
    problems: &'p mut Diagnostics,
    nesting: usize,
    /// How high the tree of the last expression is, and the highest of those beside it.
    height: usize,
    tallest: usize,
    /// The names that are known to be types, wherever they were declared.
    types: HashSet<Arc<str>>,
    /// Tokens at which type arguments were tried in vain: trying again within another trial takes
    /// exponential time.
    no_types: HashSet<usize>,
    /// The same of casts: what is in the brackets is read again as a value.
    no_casts: HashSet<usize>,
}

impl<'p> Parser<'p> {
    // ---- tokens ----

    fn next(&self) -> &'p Token {
        self.look(0)
    }

    fn look(&self, ahead: usize) -> &'p Token {
        // The end is behind all others.
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

    /// The place of the token that was taken last.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// From a place to the token that was taken last.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn expect(&mut self, text: &str) -> Parsed<Span> {
        if self.at(text) {
            return Ok(self.advance().span);
        }
        // What ends something is missed behind it, not at what comes next.
        let is_behind = self.next().begins_line || text == ";" && self.at("}");
        if matches!(text, ";" | ")" | "]" | "{" | "}" | ">") && self.at > 0 && is_behind {
            let end = self.last_span().end;
            let behind = Span { start: end.saturating_sub(1), end };
            let missing = Diagnostic::error(behind, format!("`{text}` is missing"));
            let missing = missing.label(format!("expected `{text}` behind this"));
            self.problems.add(match self.hint(&format!("`{text}`")) {
                Some(help) => missing.help(help),
                None => missing,
            });
            return Err(Told);
        }
        Err(self.unexpected(&format!("`{text}`")))
    }

    /// Tells that something else was expected at the next token.
    fn unexpected(&mut self, wanted: &str) -> Told {
        let next = self.next();
        let found = match next.kind {
            Kind::End => "the program ends here".to_owned(),
            _ => format!("`{}` was not expected here", next.text),
        };
        let told = Diagnostic::error(next.span, found).label(format!("expected {wanted}"));
        self.problems.add(match self.hint(wanted) {
            Some(help) => told.help(help),
            None => told,
        });
        Told
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
            let message = format!("`{}` is a word of the language, and no name", next.text);
            let told = Diagnostic::error(next.span, message).label(format!("expected {what}"));
            let help = self.hint(what).or_else(|| Self::other_name(&next.text, what));
            self.problems.add(match help {
                Some(help) => told.help(help),
                None => told,
            });
            return Err(Told);
        }
        Err(self.unexpected(what))
    }

    // ---- trying, nesting, going on ----

    /// Tries a part of the grammar; if it does not fit, nothing has happened.
    fn attempt<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Option<T> {
        let (at, told) = (self.at, self.problems.mark());
        match part(self) {
            Ok(found) => Some(found),
            Err(Told) => {
                self.at = at;
                self.problems.forget(told);
                None
            }
        }
    }

    /// A part of the grammar that may hold itself.
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
        Err(Told)
    }

    /// Goes behind the statement or declaration that began at `from` and is wrong.
    fn skip(&mut self, from: usize) {
        let mut depth = 0_usize;
        // Brackets that were open where the mistake is.
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
                // The end of what is around it; at the top there is nothing around.
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

    /// Parts with commas between them, up to `close`, which is taken.
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

    /// Parts in braces. One that is wrong is told, and left out.
    fn members<T>(&mut self, part: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.braced(false, part)
    }

    /// The same; `holds_more`: tables, actions and states may stand there.
    fn braced<T>(
        &mut self,
        holds_more: bool,
        mut part: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut open = self.at;
        if let Err(told) = self.expect("{") {
            if !self.begins_body() {
                return Err(told);
            }
            open = open.saturating_sub(1);
        }
        // What goes on behind the braces began in front of them.
        let begun = self.begun;
        let found = self.nested(|parser| {
            let mut found = Vec::new();
            while parser.goes_on(open, holds_more) {
                let from = parser.at;
                parser.begun = from;
                match part(parser) {
                    Ok(member) => found.push(member),
                    Err(Told) => parser.skip(from),
                }
            }
            parser.take("}");
            Ok(found)
        });
        self.begun = begun;
        found
    }

    /// `(a, name = b, _)`
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
