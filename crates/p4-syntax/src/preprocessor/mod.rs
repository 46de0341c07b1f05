//! The C preprocessor (P4_16 specification, section 6.2): from files to tokens.

mod condition;
mod expand;
mod macros;

use std::collections::HashMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::{Kind, Token, tokens};
use crate::source::{MAX_BYTES, Sources, Span};
use crate::words::closest_word;
use macros::Macro;

/// Source of included files.
pub trait Includes {
    /// Returns the name and the text of the file `name` that the file `from` includes, or the
    /// reason why there is none. `system` is true for a name in angle brackets. `<core.p4>` and
    /// `<ubpf_model.p4>` are built in.
    fn read(&self, name: &str, from: &str, system: bool) -> Result<(String, String), String>;

    /// Predefined macros: names and bodies.
    fn defines(&self) -> &[(String, String)] {
        &[]
    }
}

/// No files except those of the core library and the model.
#[derive(Debug, Clone, Copy)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&self, _: &str, _: &str, _: bool) -> Result<(String, String), String> {
        Err("no such file".to_owned())
    }
}

/// Name in diagnostics for the macros from [`Includes::defines`].
const DEFINES: &str = "<defines>";

const DIRECTIVES: [&str; 13] = [
    "include", "define", "undef", "if", "ifdef", "ifndef", "elif", "else", "endif", "error",
    "warning", "line", "pragma",
];

/// Maximum nesting depth of includes.
const MAX_DEPTH: usize = 64;

/// Preprocesses `text` and all files that it includes. The last token is [`Kind::End`].
pub(crate) fn preprocess(
    name: &str,
    text: &str,
    includes: &dyn Includes,
    sources: &mut Sources,
    problems: &mut Diagnostics,
) -> Vec<Token> {
    let macros = HashMap::new();
    let mut run = Preprocessor {
        includes,
        sources,
        problems,
        macros,
        out: Vec::new(),
        pending: Vec::new(),
        depth: 0,
        budget: Some(expand::MAX_TOKENS),
    };
    let define = |(name, value): &(String, String)| format!("#define {name} {value}\n");
    let defines: String = includes.defines().iter().map(define).collect();
    if !defines.is_empty() {
        run.file(DEFINES, &defines, Span::default());
    }
    run.file(name, text, Span::default());
    let end = run.out.last().map_or(0, |last: &Token| last.span.end);
    let mut out = run.out;
    out.push(Token {
        kind: Kind::End,
        text: "".into(),
        span: Span { start: end, end },
        begins_line: true,
        spaced: true,
    });
    out
}

struct Preprocessor<'p> {
    includes: &'p dyn Includes,
    sources: &'p mut Sources,
    problems: &'p mut Diagnostics,
    macros: HashMap<Arc<str>, Arc<Macro>>,
    out: Vec<Token>,
    /// Tokens not yet expanded: the arguments of a macro may span several lines.
    pending: Vec<Token>,
    depth: usize,
    /// Number of tokens that macros may still produce; None after the limit has been exceeded.
    budget: Option<usize>,
}

/// An open `#if`.
struct Conditional {
    span: Span,
    /// True if the enclosing text is active.
    around: bool,
    /// True if this branch is active.
    active: bool,
    /// True if a branch has been active.
    taken: bool,
    /// Source span of its `#else`.
    other: Option<Span>,
}

impl Preprocessor<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.problems.add(Diagnostic::error(span, message));
    }

    fn file(&mut self, name: &str, text: &str, included: Span) {
        let Some(index) = self.sources.add(name, text) else {
            let message = format!("the program has more than {} MB", MAX_BYTES >> 20);
            return self.error(included, message);
        };
        let start = self.sources.file(index).start;
        let tokens = tokens(text, start, self.problems);
        let mut open: Vec<Conditional> = Vec::new();
        let mut rest = tokens.as_slice();
        while let Some(first) = rest.first() {
            let line = 1 + rest[1..].iter().take_while(|token| !token.begins_line).count();
            let (this, behind) = rest.split_at(line);
            rest = behind;
            let active = open.last().is_none_or(|last| last.active);
            if first.begins_line && first.is("#") {
                self.directive(this, name, &mut open, active);
            } else if active {
                self.pending.extend_from_slice(this);
            }
        }
        self.flush();
        for conditional in open {
            let missing = Diagnostic::error(conditional.span, "this condition has no end");
            self.problems.add(missing.help("write `#endif`"));
        }
    }

    /// Expands the pending tokens.
    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let expanded = self.expand_all(pending);
        self.out.extend(expanded);
    }

    fn directive(&mut self, line: &[Token], file: &str, open: &mut Vec<Conditional>, active: bool) {
        // A `#` alone has no effect.
        let Some(word) = line.get(1) else { return };
        let span = line[0].span.to(word.span);
        let rest = &line[2..];
        match &*word.text {
            "if" | "ifdef" | "ifndef" => {
                let holds = active && self.condition(&word.text, span, rest);
                let (around, taken) = (active, holds);
                open.push(Conditional { span, around, active: holds, taken, other: None });
            }
            "elif" | "else" => self.branch(&word.text, span, rest, open),
            "endif" => {
                if open.pop().is_none() {
                    self.error(span, "`#endif` without `#if`");
                }
            }
            _ if !active => {}
            "include" => self.include(span, rest, file),
            "define" => {
                self.flush();
                self.define(span, rest);
            }
            "undef" => {
                self.flush();
                match rest.first() {
                    Some(name) if name.kind == Kind::Word => drop(self.macros.remove(&name.text)),
                    _ => self.error(span, "`#undef` needs a macro's name"),
                }
            }
            "error" => {
                let message = self.rest_of(rest);
                self.error(span, format!("#error: {message}"));
            }
            "warning" => {
                let message = format!("#warning: {}", self.rest_of(rest));
                self.problems.add(Diagnostic::warning(span, message));
            }
            // Source locations are those of the files as read, so `#line` is ignored.
            "line" | "pragma" => {}
            other => {
                let unknown = Diagnostic::error(word.span, format!("no directive `#{other}`"));
                self.problems.add(unknown.help(match closest_word(other, &DIRECTIVES) {
                    Some(near) => format!("`#{near}` is one"),
                    None => format!(
                        "a comment begins with `//`; directives are #{}",
                        DIRECTIVES.join(", #")
                    ),
                }));
            }
        }
    }

    /// Processes `#elif` or `#else`.
    fn branch(&mut self, word: &str, span: Span, rest: &[Token], open: &mut [Conditional]) {
        let Some(last) = open.last_mut() else {
            return self.error(span, format!("`#{word}` without `#if`"));
        };
        if let Some(other) = last.other {
            let late = Diagnostic::error(span, format!("`#{word}` after `#else`"));
            return self.problems.add(late.related(other, "the `#else`"));
        }
        let may = last.around && !last.taken;
        if word == "else" {
            last.other = Some(span);
        }
        let holds = may && (word == "else" || self.condition("if", span, rest));
        last.active = holds;
        last.taken |= holds;
    }

    fn include(&mut self, span: Span, rest: &[Token], from: &str) {
        let rest = match rest.first() {
            // The name may be the result of a macro.
            Some(token) if token.kind == Kind::Word => self.expand_all(rest.to_vec()),
            _ => rest.to_vec(),
        };
        let (Some(first), Some(last)) = (rest.first(), rest.last()) else {
            return self.error(span, "`#include` needs a file's name");
        };
        let place = first.span.to(last.span);
        let (name, system) = if first.kind == Kind::Text && rest.len() == 1 {
            (first.text.trim_matches('"').to_owned(), false)
        } else if first.is("<") && last.is(">") && rest.len() > 2 {
            let within = rest[1..rest.len() - 1].iter().enumerate();
            let blank = |at, token: &Token| if at > 0 && token.spaced { " " } else { "" };
            (
                within.map(|(at, token)| format!("{}{}", blank(at, token), token.text)).collect(),
                true,
            )
        } else {
            let odd = Diagnostic::error(place, "this is not a file's name");
            return self.problems.add(odd.help("write \"NAME\" or <NAME>, and nothing after it"));
        };
        if self.depth == MAX_DEPTH {
            let message = format!("files include each other more than {MAX_DEPTH} deep");
            return self.error(place, message);
        }
        self.flush();
        let of_model = || Some((format!("<{name}>"), crate::library::text(&name)?.to_owned()));
        // A file in quotes is first searched relative to the including file.
        let found = match of_model().filter(|_| system) {
            Some(found) => Ok(found),
            None => self.includes.read(&name, from, system).or_else(|why| of_model().ok_or(why)),
        };
        match found {
            Ok((name, text)) => {
                self.depth += 1;
                self.file(&name, &text, place);
                self.depth -= 1;
            }
            Err(why) => {
                let diagnostic = Diagnostic::error(place, format!("cannot include {name}: {why}"));
                self.problems.add(match crate::words::meant_file(&name) {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                });
            }
        }
    }

    /// Returns the text of the rest of a line.
    fn rest_of(&self, rest: &[Token]) -> String {
        match (rest.first(), rest.last()) {
            (Some(first), Some(last)) => self.sources.text(first.span.to(last.span)).to_owned(),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
