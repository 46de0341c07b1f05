//! Hints for words and operators of other languages, and for unclosed braces.

use super::{KEYWORDS, Parsed, Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Kind, Token};
use crate::words;

/// First words of statements and declarations of other languages.
const FOREIGN_WORDS: [(&[&str], &str); 8] = [
    (&["elif", "elseif", "elsif"], "write `else if`"),
    (&["while", "do"], "a loop has an end: `for (bit<8> i = 0; i < 4; i += 1) { … }`"),
    (&["goto"], "a parser goes on with `transition STATE;`"),
    (&["import", "include", "using"], "write `#include <ubpf_model.p4>`"),
    (&["header_type"], "write `header NAME { … }`"),
    (
        &["function", "func", "fn", "def", "void"],
        "write `TYPE NAME(…) { … }` or `action NAME(…) { … }`",
    ),
    (&["case"], "a case has no word in front: `1: { … }`"),
    (&["select"], "write `transition select(…) { … }`"),
];

/// First words of declarations that are allowed only at top level.
const AT_TOP: [&str; 9] = [
    "control",
    "enum",
    "extern",
    "header",
    "header_union",
    "package",
    "parser",
    "struct",
    "typedef",
];

/// First words of declarations.
const DECLARATIONS: [&str; 14] = [
    "action",
    "apply",
    "const",
    "control",
    "enum",
    "extern",
    "header",
    "header_union",
    "package",
    "parser",
    "state",
    "struct",
    "table",
    "typedef",
];

/// First words of declarations with parameters and a body.
const WITH_PARAMETERS: [&str; 3] = ["action", "control", "parser"];

/// First words of statements, which cannot start anything else.
const STATEMENTS: [&str; 6] = ["if", "switch", "for", "return", "exit", "{"];

impl Parser<'_> {
    /// Returns a hint for an unexpected token.
    pub(super) fn hint(&self, wanted: &str) -> Option<String> {
        let back = |count| self.at.checked_sub(count).map_or("", |at| &*self.tokens[at].text);
        let is_number = |count: usize| {
            self.at.checked_sub(count).is_some_and(|at| self.tokens[at].kind == Kind::Integer)
        };
        let (next, ahead) = (&*self.next().text, &*self.look(1).text);
        let mark = match (back(1), next) {
            (_, "=") if ahead == ">" => "`>=` is greater or equal",
            ("=", ">") => "`>=` is greater or equal",
            (_, "=") if ahead == "<" => "`<=` is less or equal",
            ("=", "<") => "`<=` is less or equal",
            (_, "=") if wanted == "`)`" => "`==` compares",
            ("<", ">") if wanted == "an expression" => "`!=` compares",
            ("-", ">") => "a dot selects a field: `header.field`",
            ("++", ";" | ")") if self.stands_alone(self.at - 1) => "`x += 1` adds one",
            (_, "++") if self.stands_alone(self.at) => "`x += 1` adds one",
            ("-", ";" | ")") if back(2) == "-" => "`x -= 1` takes one away",
            (_, "and") => "write `&&`",
            (_, "or") => "write `||`",
            ("not", _) => "write `!`",
            (".", _) if is_number(2) && self.next().kind == Kind::Integer => {
                "an address is a number: 10.0.0.1 is 0x0a000001"
            }
            (_, ":") if is_number(1) && self.look(1).kind == Kind::Integer => {
                "an address is a number: 02:00:00:00:00:01 is 0x020000000001"
            }
            (_, "-") if self.at > 0 && Self::is_name(&self.tokens[self.at - 1]) => {
                "names have letters, digits and `_`"
            }
            (_, word) if wanted == "a type" && AT_TOP.contains(&word) => {
                "this is declared at the top, outside of all braces"
            }
            (_, "action" | "table") if wanted == "an expression" => {
                "this is declared beside `apply`, in front of it"
            }
            (_, "bit" | "int" | "varbit") if ahead != "<" => "a type has its width: `bit<8>`",
            _ => return self.other_word(),
        };
        Some(mark.to_owned())
    }

    /// Returns true if only an l-value is between the start of the statement and this token. In
    /// `x++;`, the operator is then not a concatenation.
    fn stands_alone(&self, token: usize) -> bool {
        let mut depth = 0_usize;
        for at in (0..token).rev() {
            let before = &self.tokens[at];
            match &*before.text {
                ")" | "]" => depth += 1,
                // `for (x++; …)`
                "(" if depth == 0 => return at > 0 && self.tokens[at - 1].is("for"),
                "(" | "[" if depth > 0 => depth -= 1,
                ";" | "{" | "}" => return depth == 0,
                "return" | "const" if depth == 0 => return false,
                "." => {}
                _ if depth == 0 && before.kind != Kind::Word => return false,
                _ => {}
            }
        }
        false
    }

    /// Returns a hint for the first word of the current statement or declaration.
    fn other_word(&self) -> Option<String> {
        let first = self.tokens.get(self.begun)?;
        let found = FOREIGN_WORDS.iter().find(|(words, _)| words.iter().any(|word| first.is(word)));
        found.map(|(_, help)| (*help).to_owned())
    }

    /// Reports a misspelled keyword before a declaration, or a misspelled type name.
    pub(super) fn check_word(&mut self) -> Parsed<()> {
        let (next, second) = (self.next(), self.look(1));
        let is_known = DECLARATIONS.contains(&&*next.text) || self.types.contains(&next.text);
        if !Self::is_name(next) || is_known {
            return Ok(());
        }
        let meant = if second.is("<") {
            self.meant_width().map(|help| ("not a type", help))
        } else {
            self.meant_declaration().map(|help| ("not a keyword", help))
        };
        let Some((what, help)) = meant else { return Ok(()) };
        let diagnostic = Diagnostic::error(next.span, format!("`{}` is {what}", next.text));
        self.problems.add(diagnostic.help(help));
        Err(Reported)
    }

    /// Returns a hint for a misspelled type with a width, such as `bits<8>`.
    fn meant_width(&self) -> Option<String> {
        let width = self.look(2);
        let meant = words::meant_type(&self.next().text)?;
        let (of @ ("bit" | "int"), _) = meant.split_once('<')? else { return None };
        (width.kind == Kind::Integer).then(|| format!("write `{of}<{}>`", width.text))
    }

    /// Returns a hint for a misspelled keyword before a declaration with a body.
    fn meant_declaration(&self) -> Option<String> {
        let near = |known| {
            let near = words::closest_word(&self.next().text, known)?;
            Some(format!("`{near}` is one"))
        };
        if self.look(1).is("{") {
            return near(&DECLARATIONS).or_else(|| self.other_word());
        }
        if !Self::is_name(self.look(1)) {
            return None;
        }
        let generic = self.at + 2;
        let parameters = self.behind(generic, "<", ">")?;
        let body = self.behind(self.behind(parameters, "(", ")")?, "(", ")")?;
        // `Header first<Header>(…) { … }` is a function that returns its type parameter.
        let is_type =
            self.tokens[generic..parameters].iter().any(|one| one.text == self.next().text);
        if is_type || !self.tokens[body].is("{") {
            return None;
        }
        let known: &[&str] = if body > parameters { &WITH_PARAMETERS } else { &DECLARATIONS };
        near(known).or_else(|| self.other_word())
    }

    /// Returns the index after a pair of brackets, or `from` if there is none; None if they are
    /// unclosed.
    fn behind(&self, from: usize, open: &str, close: &str) -> Option<usize> {
        if !self.tokens.get(from)?.is(open) {
            return Some(from);
        }
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(from) {
            if token.is(open) {
                depth += 1;
            } else if token.is(close) {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1).filter(|&at| at < self.tokens.len());
                }
            } else if [";", "{", "}"].iter().any(|mark| token.is(mark)) {
                return None;
            }
        }
        None
    }

    /// Parses statements in a control outside its `apply`, and reports them.
    pub(super) fn statements_outside(&mut self) -> Parsed<bool> {
        if !STATEMENTS.iter().any(|word| self.at(word)) {
            return Ok(false);
        }
        let diagnostic = Diagnostic::error(self.next().span, "a statement stands in `apply`");
        self.problems.add(diagnostic.help("write `apply { … }` around it"));
        while !self.at("}") && self.next().kind != Kind::End {
            self.statement()?;
        }
        Ok(true)
    }

    // ---- braces ----

    /// Returns true if the braces contain more. If the next token starts a construct that is not
    /// allowed there, it reports the missing closing brace. `holds_more`: tables, actions and
    /// states are allowed.
    pub(super) fn goes_on(&mut self, open: usize, holds_more: bool) -> bool {
        if self.at("}") {
            return false;
        }
        let next = self.next();
        let name = || self.look(1).kind == Kind::Word;
        let is_other = match &*next.text {
            _ if next.kind == Kind::End => true,
            _ if !next.begins_line => false,
            word if AT_TOP.contains(&word) => name() && !self.is_deeper(open),
            "action" | "table" => !holds_more && name() && !self.is_deeper(open),
            "state" => !holds_more && name() && self.look(2).is("{") && !self.is_deeper(open),
            "apply" => !holds_more && self.look(1).is("{"),
            _ => false,
        };
        if is_other && self.unclosed != Some(self.at) {
            // All enclosing braces see the same missing brace. Report it once.
            self.unclosed = Some(self.at);
            let brace = self.tokens[self.left_open(open)].span;
            let why = if next.kind == Kind::End {
                "the program ends here"
            } else {
                "expected `}` in front of this"
            };
            let diagnostic = Diagnostic::error(brace, "this `{` has no `}`");
            self.problems.add(diagnostic.label("opened here").related(next.span, why));
        }
        !is_other
    }

    /// Returns true if a body without its opening brace starts here: on a new line, with deeper
    /// indentation.
    pub(super) fn begins_body(&self) -> bool {
        let next = self.next();
        let is_word = next.kind == Kind::Word && !AT_TOP.contains(&&*next.text);
        is_word && next.begins_line && self.at > 0 && self.is_deeper(self.at - 1)
    }

    /// Returns true if the next token has deeper indentation than the line of the opening brace.
    fn is_deeper(&self, open: usize) -> bool {
        let line = self.tokens[..=open].iter().rfind(|token| token.begins_line);
        line.is_some_and(|line| self.column(self.next()) > self.column(line))
    }

    /// Returns the brace that is probably unclosed: the first inner one with a closing brace on a
    /// line of less indentation.
    fn left_open(&self, open: usize) -> usize {
        let first = self.tokens[..=open].iter().rposition(|token| token.begins_line).unwrap_or(0);
        let mut column = 0;
        let mut braces = Vec::new();
        for (at, token) in self.tokens[..self.at].iter().enumerate().skip(first) {
            if token.begins_line {
                column = self.column(token);
            }
            if token.is("{") && at >= open {
                braces.push((at, column));
            } else if token.is("}")
                && let Some((opened, before)) = braces.pop()
                && token.begins_line
                && column < before
            {
                return opened;
            }
        }
        open
    }

    /// Returns the column of a token, from 0.
    fn column(&self, token: &Token) -> usize {
        let Some(file) = self.sources.file_of(token.span) else { return 0 };
        let start = (token.span.start - file.start) as usize;
        let before = file.text.as_bytes().get(..start).unwrap_or_default();
        before.iter().rev().take_while(|&&byte| byte != b'\n').count()
    }

    /// Suggests an identifier instead of a keyword.
    pub(super) fn other_name(word: &str, wanted: &str) -> Option<String> {
        (KEYWORDS.contains(&word) && wanted.ends_with("name")).then(|| format!("call it `{word}_`"))
    }
}
