//! Lexical analysis (P4_16 specification, section 6.3), with the whitespace information that the
//! preprocessor needs.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::Span;

/// The kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// An integer literal, including its width and base.
    Integer,
    /// A string literal, including its quotes.
    Text,
    /// An operator, a bracket or other punctuation.
    Mark,
    /// The end of the program.
    End,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: Arc<str>,
    pub(crate) span: Span,
    /// True if only whitespace precedes the token on its line.
    pub(crate) begins_line: bool,
    /// True if whitespace or a comment precedes the token.
    pub(crate) spaced: bool,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && &*self.text == text
    }
}

/// Operators and brackets. Longer ones precede their prefixes. `>>` is not included, because it may
/// close two lists of type arguments.
const MARKS: [&str; 55] = [
    "|+|=", "|-|=", "<<=", "|+|", "|-|", "&&&", "...", "==", "!=", "<=", ">=", "&&", "||", "++",
    "<<", "..", "##", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "&",
    "|", "^", "~", "!", "<", ">", "=", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "@",
    "#", "$", "'", "`", "\\",
];

/// Splits `text` into tokens. `start` is the position of its first byte.
pub(crate) fn tokens(text: &str, start: u32, problems: &mut Diagnostics) -> Vec<Token> {
    // Some editors put a byte order mark at the start of a file.
    let at = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut lexer = Lexer { text, start, at, begins_line: true, spaced: true, problems };
    let mut found = Vec::new();
    while let Some(token) = lexer.next() {
        found.push(token);
    }
    found
}

struct Lexer<'t> {
    text: &'t str,
    start: u32,
    at: usize,
    begins_line: bool,
    spaced: bool,
    problems: &'t mut Diagnostics,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn span(&self, from: usize, to: usize) -> Span {
        Span { start: self.start + from as u32, end: self.start + to as u32 }
    }

    fn next(&mut self) -> Option<Token> {
        loop {
            self.skip_blanks();
            let first = self.rest().chars().next()?;
            let (kind, length) = match first {
                'A'..='Z' | 'a'..='z' | '_' => (Kind::Word, self.word_length()),
                '0'..='9' => (Kind::Integer, self.word_length()),
                '"' => (Kind::Text, self.string_length()),
                _ => match MARKS.iter().find(|mark| self.rest().starts_with(**mark)) {
                    Some(mark) => (Kind::Mark, mark.len()),
                    None => {
                        let span = self.span(self.at, self.at + first.len_utf8());
                        let message = format!("the character `{}` is not P4", first.escape_debug());
                        self.problems.add(Diagnostic::error(span, message));
                        self.at += first.len_utf8();
                        continue;
                    }
                },
            };
            let end = self.at + length;
            let token = Token {
                kind,
                text: self.text[self.at..end].into(),
                span: self.span(self.at, end),
                begins_line: self.begins_line,
                spaced: self.spaced,
            };
            (self.at, self.begins_line, self.spaced) = (end, false, false);
            return Some(token);
        }
    }

    fn word_length(&self) -> usize {
        let rest = self.rest();
        rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
    }

    fn string_length(&mut self) -> usize {
        let mut escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                '"' if !escaped => return at + 1,
                '\n' => break,
                _ => escaped = c == '\\' && !escaped,
            }
        }
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        let span = self.span(self.at, self.at + 1);
        self.problems.add(Diagnostic::error(span, "this string has no end in its line"));
        length
    }

    /// Skips whitespace, comments and escaped newlines.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks =
                rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\u{b}', '\u{c}']).len();
            let skipped = if blanks > 0 {
                blanks
            } else if rest.starts_with('\n') {
                self.begins_line = true;
                1
            } else if rest.starts_with("\\\n") {
                2
            } else if rest.starts_with("\\\r\n") {
                3
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                self.comment_length()
            } else {
                return;
            };
            self.spaced = true;
            self.at += skipped;
        }
    }

    fn comment_length(&mut self) -> usize {
        if let Some(end) = self.rest()[2..].find("*/") {
            return end + 4;
        }
        let span = self.span(self.at, self.at + 2);
        self.problems.add(Diagnostic::error(span, "this comment has no end").help("write `*/`"));
        self.rest().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> (Vec<(Kind, String)>, Vec<String>) {
        let mut problems = Diagnostics::default();
        let tokens = tokens(text, 0, &mut problems);
        let problems = problems.iter().map(|one| one.message.clone()).collect();
        (tokens.into_iter().map(|token| (token.kind, token.text.to_string())).collect(), problems)
    }

    #[test]
    fn every_kind_is_known() {
        let (tokens, problems) = lex("a_1 8w0xF_F |+|= >> \"s\\\"t\" // x\n/* y\n */_");
        let wanted = [
            (Kind::Word, "a_1"),
            (Kind::Integer, "8w0xF_F"),
            (Kind::Mark, "|+|="),
            (Kind::Mark, ">"),
            (Kind::Mark, ">"),
            (Kind::Text, "\"s\\\"t\""),
            (Kind::Word, "_"),
        ];
        assert_eq!(tokens, wanted.map(|(kind, text)| (kind, text.to_owned())));
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn no_mark_hides_a_longer_one() {
        for (at, mark) in MARKS.iter().enumerate() {
            assert!(MARKS[at + 1..].iter().all(|later| !later.starts_with(mark)), "{mark}");
        }
    }

    #[test]
    fn lines_and_blanks_are_known() {
        let mut problems = Diagnostics::default();
        let tokens = tokens("#if a\\\n b\n c(", 7, &mut problems);
        let seen: Vec<_> =
            tokens.iter().map(|t| (&*t.text, t.span.start, t.begins_line, t.spaced)).collect();
        assert_eq!(
            seen,
            [
                ("#", 7, true, true),
                ("if", 8, false, false),
                ("a", 11, false, true),
                ("b", 15, false, true),
                ("c", 18, true, true),
                ("(", 19, false, false),
            ]
        );
    }

    #[test]
    fn invalid_characters_are_named_and_the_rest_is_read() {
        let (tokens, problems) = lex("a é \"x\nb /* c");
        assert_eq!(
            tokens.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(),
            ["a", "\"x", "b"]
        );
        assert_eq!(
            problems,
            [
                "the character `é` is not P4",
                "this string has no end in its line",
                "this comment has no end",
            ]
        );
    }
}
