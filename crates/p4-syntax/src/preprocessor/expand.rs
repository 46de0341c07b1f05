//! Macro expansion according to ISO C (C17, section 6.10.3): arguments are expanded first, the
//! result is rescanned, and a macro is not expanded recursively.

use std::sync::Arc;

use super::Preprocessor;
use super::macros::Macro;
use crate::diagnostic::Diagnostic;
use crate::lexer::{Kind, Token, tokens};
use crate::source::Span;

/// Maximum number of tokens that macros may produce. Macros that double each other grow
/// exponentially.
pub(super) const MAX_TOKENS: usize = 1 << 18;

/// Maximum nesting depth of function-like macros in arguments.
const MAX_DEPTH: usize = 64;

/// Hide set of a token: the macros that it comes from, which are not expanded again.
type Hidden = Option<Arc<Vec<Arc<str>>>>;

#[derive(Clone)]
struct Marked {
    token: Token,
    hidden: Hidden,
}

impl Preprocessor<'_> {
    /// Expands all macros in `tokens`.
    pub(super) fn expand_all(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        if self.macros.is_empty() && !tokens.iter().any(|token| token.text.starts_with("__")) {
            return tokens;
        }
        let marked = tokens.into_iter().map(|token| Marked { token, hidden: None }).collect();
        self.expand(marked, 0).into_iter().map(|marked| marked.token).collect()
    }

    fn expand(&mut self, mut rest: Vec<Marked>, depth: usize) -> Vec<Marked> {
        let mut out = Vec::with_capacity(rest.len());
        rest.reverse();
        while let Some(next) = rest.pop() {
            if next.token.kind != Kind::Word || hides(&next.hidden, &next.token.text) {
                out.push(next);
                continue;
            }
            if let Some(value) = self.predefined(&next.token) {
                out.push(Marked { token: value, hidden: None });
                continue;
            }
            let Some(found) = self.macros.get(&next.token.text).cloned() else {
                out.push(next);
                continue;
            };
            if !self.spend(1, next.token.span) {
                return out;
            }
            let mut hidden = next.hidden.as_deref().cloned().unwrap_or_default();
            let body = if let Some(parameters) = &found.parameters {
                if !rest.last().is_some_and(|behind| behind.token.is("(")) {
                    out.push(next);
                    continue;
                }
                let Some((arguments, end)) = self.arguments(&mut rest, &found, &next.token) else {
                    continue;
                };
                let of_end = end.hidden.as_deref().cloned().unwrap_or_default();
                hidden.retain(|name| of_end.contains(name));
                if depth == MAX_DEPTH {
                    self.error(next.token.span, "macros' arguments are nested too deeply");
                    continue;
                }
                self.substitute(&found, parameters, &arguments, next.token.span, depth)
            } else {
                self.substitute(&found, &[], &[], next.token.span, depth)
            };
            let Some(body) = body else { return out };
            hidden.push(next.token.text.clone());
            let hidden = Arc::new(hidden);
            let first = body.len();
            for (at, marked) in body.into_iter().rev().enumerate() {
                let mut marked = marked;
                marked.hidden = Some(union(marked.hidden, &hidden));
                if at + 1 == first {
                    marked.token.spaced = next.token.spaced;
                }
                rest.push(marked);
            }
        }
        out
    }

    /// Charges the token budget. Returns false if it is exhausted.
    fn spend(&mut self, tokens: usize, used: Span) -> bool {
        let Some(budget) = self.budget else { return false };
        self.budget = budget.checked_sub(tokens);
        if self.budget.is_none() {
            self.error(used, format!("macros make more than {MAX_TOKENS} tokens"));
        }
        self.budget.is_some()
    }

    fn predefined(&self, token: &Token) -> Option<Token> {
        // Locating a token is slow, so do it only for these names.
        let place = || self.sources.locate(token.span);
        let (kind, text) = match &*token.text {
            "__LINE__" => (Kind::Integer, place().map_or(0, |place| place.line).to_string()),
            "__FILE__" => (Kind::Text, format!("\"{}\"", place().map_or("", |place| place.file))),
            _ => return None,
        };
        Some(Token { kind, text: text.into(), ..token.clone() })
    }

    /// Removes a macro's arguments and parentheses from `rest`. Also returns the closing
    /// parenthesis.
    fn arguments(
        &mut self,
        rest: &mut Vec<Marked>,
        found: &Macro,
        name: &Token,
    ) -> Option<(Vec<Vec<Marked>>, Marked)> {
        let wanted = found.parameters.as_ref().map_or(0, Vec::len);
        let mut all = vec![Vec::new()];
        let mut depth = 0;
        // Remove the opening parenthesis.
        rest.pop();
        while let Some(next) = rest.pop() {
            let rest_is_one = found.variadic && all.len() == wanted;
            if next.token.is(")") && depth == 0 {
                let none = wanted == 0 && all.len() == 1 && all[0].is_empty();
                if none {
                    all.clear();
                }
                // The variadic arguments may be empty.
                if found.variadic && all.len() + 1 == wanted {
                    all.push(Vec::new());
                }
                if all.len() == wanted {
                    return Some((all, next));
                }
                let message =
                    format!("`{}` takes {wanted} arguments, not {}", name.text, all.len());
                let wrong = Diagnostic::error(name.span, message);
                self.problems.add(wrong.related(found.span, "defined here"));
                return None;
            } else if next.token.is(",") && depth == 0 && !rest_is_one {
                all.push(Vec::new());
                continue;
            } else if next.token.is("(") {
                depth += 1;
            } else if next.token.is(")") {
                depth -= 1;
            }
            if let Some(last) = all.last_mut() {
                last.push(next);
            }
        }
        let endless = format!("the arguments of `{}` have no end", name.text);
        self.problems.add(Diagnostic::error(name.span, endless).help("write `)`"));
        None
    }

    /// Substitutes the arguments in a macro's body. Returns None if the token budget is exhausted.
    /// Tokens of the body get the span of the macro's use.
    fn substitute(
        &mut self,
        found: &Macro,
        parameters: &[Arc<str>],
        arguments: &[Vec<Marked>],
        used: Span,
        depth: usize,
    ) -> Option<Vec<Marked>> {
        let argument = |token: &Token| {
            parameters.iter().position(|name| token.kind == Kind::Word && *name == token.text)
        };
        // Expand each argument once, regardless of the number of its uses, because arguments may
        // contain macros again.
        let mut expanded: Vec<Option<Vec<Marked>>> = vec![None; arguments.len()];
        let mut out: Vec<Marked> = Vec::new();
        let mut paste = false;
        let mut body = found.body.iter().peekable();
        while let Some(token) = body.next() {
            if token.is("##") {
                paste = true;
                continue;
            }
            let pasted = body.peek().is_some_and(|next| next.is("##"));
            let at = argument(token);
            let mut part = match at {
                _ if token.is("#") && found.parameters.is_some() => {
                    // `define` has rejected a `#` without a parameter.
                    let named = body.next().and_then(argument).map_or(&[][..], |at| &arguments[at]);
                    if !self.spend(1 + named.len(), used) || !self.spend(bulk(named), used) {
                        return None;
                    }
                    vec![Marked { token: quoted(named, used), hidden: None }]
                }
                Some(at) => {
                    let whole = if paste || pasted {
                        &arguments[at]
                    } else {
                        expanded[at]
                            .get_or_insert_with(|| self.expand(arguments[at].clone(), depth + 1))
                    };
                    // Charge the budget before copying: a long argument may be used any number of
                    // times.
                    if !self.spend(whole.len().max(1), used) {
                        return None;
                    }
                    whole.clone()
                }
                None => {
                    if !self.spend(1, used) {
                        return None;
                    }
                    let token = Token { span: used, begins_line: false, ..token.clone() };
                    vec![Marked { token, hidden: None }]
                }
            };
            if std::mem::take(&mut paste)
                && let (Some(left), Some(right)) = (out.last(), part.first())
            {
                if !self.spend(bulk([left, right]), used) {
                    return None;
                }
                if let Some(one) = self.paste(&left.token, &right.token, used) {
                    out.pop();
                    part[0] = Marked { token: one, hidden: None };
                }
            }
            out.append(&mut part);
        }
        Some(out)
    }

    /// Pastes two tokens into one.
    fn paste(&mut self, left: &Token, right: &Token, used: Span) -> Option<Token> {
        let text = format!("{}{}", left.text, right.text);
        let known = self.problems.mark();
        let made = tokens(&text, used.start, self.problems);
        self.problems.forget(known);
        match <[Token; 1]>::try_from(made) {
            Ok([one]) => Some(Token { span: used, begins_line: false, spaced: left.spaced, ..one }),
            Err(_) => {
                self.error(used, format!("`{}` and `{}` make no token", left.text, right.text));
                None
            }
        }
    }
}

fn hides(hidden: &Hidden, name: &Arc<str>) -> bool {
    hidden.as_ref().is_some_and(|names| names.contains(name))
}

fn union(hidden: Hidden, more: &Arc<Vec<Arc<str>>>) -> Arc<Vec<Arc<str>>> {
    match hidden {
        None => more.clone(),
        Some(names) if more.iter().all(|name| names.contains(name)) => names,
        Some(names) => {
            let mut all = (**more).clone();
            all.extend(names.iter().filter(|name| !more.contains(name)).cloned());
            Arc::new(all)
        }
    }
}

/// Number of tokens to charge for the text of pasted or quoted tokens. Repeated pasting or quoting
/// grows exponentially too.
fn bulk<'m>(tokens: impl IntoIterator<Item = &'m Marked>) -> usize {
    tokens.into_iter().map(|marked| marked.token.text.len()).sum::<usize>() / 16
}

/// Converts an argument to a string literal.
fn quoted(argument: &[Marked], used: Span) -> Token {
    let mut text = String::from("\"");
    for (at, Marked { token, .. }) in argument.iter().enumerate() {
        if at > 0 && token.spaced {
            text.push(' ');
        }
        if token.kind == Kind::Text {
            text.push_str(&token.text.replace('\\', "\\\\").replace('"', "\\\""));
        } else {
            text.push_str(&token.text);
        }
    }
    text.push('"');
    Token { kind: Kind::Text, text: text.into(), span: used, begins_line: false, spaced: true }
}
