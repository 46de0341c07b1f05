//! Macro definitions.

use std::sync::Arc;

use super::Preprocessor;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Kind, Token};
use crate::source::Span;

/// A macro.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Macro {
    pub(super) span: Span,
    /// Names of the parameters; None for an object-like macro.
    pub(super) parameters: Option<Vec<Arc<str>>>,
    /// True if the last parameter takes all remaining arguments.
    pub(super) variadic: bool,
    pub(super) body: Vec<Token>,
}

impl Macro {
    /// Returns true if a second definition is the same.
    fn is_same(&self, other: &Self) -> bool {
        let texts = |one: &Self| one.body.iter().map(|t| t.text.clone()).collect::<Vec<_>>();
        (&self.parameters, self.variadic) == (&other.parameters, other.variadic)
            && texts(self) == texts(other)
    }
}

impl Preprocessor<'_> {
    /// Processes `#define NAME BODY` or `#define NAME(PARAMETERS) BODY`.
    pub(super) fn define(&mut self, span: Span, line: &[Token]) {
        let Some(name) = line.first().filter(|name| name.kind == Kind::Word) else {
            return self.error(span, "`#define` needs a name");
        };
        if &*name.text == "defined" {
            return self.error(name.span, "`defined` cannot be a macro");
        }
        let mut rest = &line[1..];
        let mut made =
            Macro { span: name.span, parameters: None, variadic: false, body: Vec::new() };
        // A parenthesis after whitespace belongs to the body.
        if rest.first().is_some_and(|next| next.is("(") && !next.spaced) {
            let Some(end) = rest.iter().position(|token| token.is(")")) else {
                return self.error(rest[0].span, "this list of parameters has no end");
            };
            let Some((parameters, variadic)) = self.parameters(&rest[1..end]) else { return };
            (made.parameters, made.variadic) = (Some(parameters), variadic);
            rest = &rest[end + 1..];
        }
        made.body = rest.to_vec();
        if let Some(parameters) = &made.parameters {
            let named = |next: Option<&Token>| next.is_some_and(|t| parameters.contains(&t.text));
            let bodies = made.body.iter().enumerate();
            let mut odd = bodies.filter(|(at, t)| t.is("#") && !named(made.body.get(at + 1)));
            if let Some((_, odd)) = odd.next() {
                return self.error(odd.span, "`#` stands in front of a parameter");
            }
        }
        if let Some(edge) =
            [made.body.first(), made.body.last()].into_iter().flatten().find(|t| t.is("##"))
        {
            return self.error(edge.span, "`##` needs a token on both sides");
        }
        if let Some(before) = self.macros.get(&name.text).filter(|before| !before.is_same(&made)) {
            let again = Diagnostic::warning(name.span, format!("`{}` is redefined", name.text));
            let again = again.related(before.span, "its first definition");
            self.problems.add(again.help("write `#undef` before it"));
        }
        self.macros.insert(name.text.clone(), Arc::new(made));
    }

    fn parameters(&mut self, tokens: &[Token]) -> Option<(Vec<Arc<str>>, bool)> {
        let mut names: Vec<Arc<str>> = Vec::new();
        if tokens.is_empty() {
            return Some((names, false));
        }
        let mut parts = tokens.split(|token| token.is(",")).peekable();
        while let Some(part) = parts.next() {
            match part {
                [name] if name.kind == Kind::Word && !names.contains(&name.text) => {
                    names.push(name.text.clone());
                }
                [dots] if dots.is("...") && parts.peek().is_none() => {
                    names.push("__VA_ARGS__".into());
                    return Some((names, true));
                }
                _ => {
                    let at = part.first().unwrap_or(&tokens[0]);
                    self.error(at.span, "a macro's parameters are names, each one once");
                    return None;
                }
            }
        }
        Some((names, false))
    }
}
