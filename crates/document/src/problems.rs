//! The errors in a file, and their display.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use schemars::JsonSchema;
use serde::Serialize;

use super::cut::cut;
use super::nearest::suggest;
use super::tree::{Span, Step, Tree};

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
    /// Suggested fix.
    pub help: Option<String>,
    /// Number of invalid characters from `column` on.
    #[serde(skip)]
    length: usize,
}

/// All errors in a file, in file order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// Name of the file, as given.
    pub file: String,
    /// The errors; never empty.
    pub problems: Vec<Problem>,
    /// Source line of each error that is displayed, for the excerpt.
    #[serde(skip)]
    excerpts: Vec<String>,
    /// Number of errors that were not recorded; not serialized.
    #[serde(skip)]
    more: usize,
}

/// Maximum number of errors displayed; the rest is only counted.
const MAX_SHOWN: usize = 50;
/// Maximum number of errors recorded. One takes a hundred times as much memory as its cause in the file.
pub(crate) const MAX_FOUND: usize = 1000;
/// Maximum length of a line displayed as an excerpt.
const MAX_EXCERPT: usize = 400;

impl Problems {
    /// An error in a line of a text without a grammar; lines are counted from 1.
    pub fn at_line(file: &str, text: &str, line: usize, message: &str, help: &str) -> Self {
        let before = text.split_inclusive('\n').take(line.saturating_sub(1));
        let start = before.map(|line| line.chars().count()).sum::<usize>() as u32;
        let length = text.lines().nth(line.saturating_sub(1)).map_or(0, |l| l.chars().count());
        let end = start + length.max(1) as u32;
        let mut report = Report::new(text);
        report.add(Span { start, end, line: line as u32 }, message, Some(help.into()));
        report.finish(file)
    }

    /// A file that a text refers to is unreadable. The error is located at the first such line.
    pub fn unreadable(file: &str, text: &str, named: &str, message: &str) -> Self {
        let line = text.lines().position(|line| line.contains(named)).unwrap_or(0) + 1;
        Self::at_line(
            file,
            text,
            line,
            message,
            "name a file by its path, relative to this file's directory",
        )
    }

    /// Renders the errors as text, each with its location, line and fix.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = Vec::new();
        for (problem, line) in self.problems.iter().zip(&self.excerpts).take(MAX_SHOWN) {
            let title = Level::ERROR.primary_title(problem.message.as_str());
            let start = byte_of(line, problem.column - 1);
            let end = byte_of(line, problem.column - 1 + problem.length.max(1));
            let snippet = Snippet::source(line.as_str())
                .line_start(problem.line)
                .path(self.file.as_str())
                .annotation(AnnotationKind::Primary.span(start..end));
            let mut group = title.element(snippet);
            if let Some(help) = &problem.help {
                group = group.element(Level::HELP.message(help.as_str()));
            }
            out.push(renderer.render(&[group]));
        }
        let more = self.problems.len().saturating_sub(MAX_SHOWN) + self.more;
        if more > 0 {
            out.push(format!("… and {more} more problems"));
        }
        out.join("\n\n")
    }
}

fn byte_of(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(at, _)| at)
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}

/// Collects errors while a file is read.
pub struct Report<'a> {
    text: &'a str,
    found: Vec<(Span, String, Option<String>)>,
    /// Number of errors beyond [`MAX_FOUND`].
    more: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new(), more: 0 }
    }

    /// True if there are no errors.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn add(&mut self, span: Span, message: impl Into<String>, help: Option<String>) {
        match self.found.len() < MAX_FOUND {
            true => self.found.push((span, cut(message.into()), help.map(cut))),
            false => self.more += 1,
        }
    }

    /// The errors in file order, without duplicates.
    pub fn finish(mut self, file: &str) -> Problems {
        self.found.sort_by_key(|(span, ..)| span.start);
        self.found.dedup();
        let mut problems = Vec::new();
        let mut excerpts = Vec::new();
        // The errors are sorted, so that a single pass over the text locates all of them.
        let (mut line, mut line_start, mut column, mut index, mut at) = (1, 0, 0, 0, 0);
        for (span, message, help) in self.found {
            for c in self.text[at..].chars() {
                if index >= span.start as usize {
                    break;
                }
                index += 1;
                at += c.len_utf8();
                column += 1;
                if c == '\n' {
                    (line, line_start, column) = (line + 1, at, 0);
                }
            }
            let rest = self.text[line_start..].chars();
            let excerpt: String =
                rest.take(MAX_EXCERPT).take_while(|c| !matches!(c, '\n' | '\r')).collect();
            let room = excerpt.chars().count().saturating_sub(column);
            let length = (span.end.saturating_sub(span.start) as usize).min(room).max(1);
            problems.push(Problem { line, column: column + 1, message, help, length });
            if excerpts.len() < MAX_SHOWN {
                excerpts.push(excerpt);
            }
        }
        Problems { file: file.into(), problems, excerpts, more: self.more }
    }
}

/// A report on a file with its tree: errors are located by their path.
pub struct Place<'a> {
    /// Values of the file, with their locations.
    pub tree: &'a Tree,
    /// Errors found so far.
    pub report: Report<'a>,
}

impl Place<'_> {
    /// Reports an error in the value at `path`.
    pub fn value(&mut self, path: &[Step], message: impl Into<String>, help: &str) {
        let (_, value) = self.tree.locate(path);
        self.report.add(value, message, Some(help.into()));
    }

    /// Reports an error in the key at `path`.
    pub fn key(&mut self, path: &[Step], message: impl Into<String>, help: &str) {
        let (key, _) = self.tree.locate(path);
        self.report.add(key, message, Some(help.into()));
    }

    /// The candidate that is similar to `word`. Skipped if there are many errors, since each search
    /// takes time.
    pub fn near<'c>(
        &self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) -> Option<&'c str> {
        if self.searches() { suggest(word, candidates) } else { None }
    }

    /// True if similar candidates are still searched for.
    pub fn searches(&self) -> bool {
        self.report.found.len() < MAX_SHOWN
    }
}

/// A path as a slice of [`Step`]s: `steps!["links", 3, "r1-r2"]`.
#[macro_export]
macro_rules! steps {
    ($($step:expr),* $(,)?) => { &[$($crate::Step::from($step)),*] };
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_shows_its_line_and_its_fix() {
        let mut report = Report::new("name: x\nnödes: {}\n");
        report.add(
            Span { start: 8, end: 13, line: 2 },
            "unknown key `nödes`",
            Some("write `nodes`".into()),
        );
        let problems = report.finish("lab.yaml");
        assert_eq!((problems.problems[0].line, problems.problems[0].column), (2, 1));
        assert_eq!(
            problems.to_string(),
            "error: unknown key `nödes`\n \
             --> lab.yaml:2:1\n  \
             |\n\
             2 | nödes: {}\n  \
             | ^^^^^\n  \
             |\n  \
             = help: write `nodes`"
        );
        assert!(problems.render(true).contains('\u{1b}'));
    }

    #[test]
    fn errors_have_a_maximum_number() {
        let mut report = Report::new("x");
        for at in 0..3 * MAX_FOUND as u32 {
            report.add(Span { start: 0, end: 1, line: 1 }, format!("{at}"), None);
        }
        let problems = report.finish("x");
        assert_eq!((problems.problems.len(), problems.excerpts.len()), (MAX_FOUND, MAX_SHOWN));
        assert!(problems.to_string().ends_with("… and 2950 more problems"));
    }

    #[test]
    fn places_beyond_the_text_are_its_end() {
        let mut report = Report::new("");
        report.add(Span { start: 9, end: 12, line: 1 }, "empty", None);
        let problems = report.finish("x");
        assert_eq!((problems.problems[0].line, problems.problems[0].column), (1, 1));
        assert!(problems.to_string().contains("x:1:1"));
    }
}
