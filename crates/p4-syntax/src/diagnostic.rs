//! Compiler diagnostics: the errors and warnings of one run.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::source::{Sources, Span};

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is still compiled.
    Warning,
    /// The program is rejected.
    Error,
}

/// An error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// The message.
    pub message: String,
    /// Source span.
    pub span: Span,
    /// A label at the span, for example the expected token; may be empty.
    pub label: String,
    /// Related source spans, each with an explanation.
    pub related: Vec<(Span, String)>,
    /// A hint for a fix.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message.into())
    }

    /// Creates a warning.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message.into())
    }

    fn new(severity: Severity, span: Span, message: String) -> Self {
        let (label, related, help) = (String::new(), Vec::new(), None);
        Self { severity, message, span, label, related, help }
    }

    /// Sets the label at the span.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Adds a related source span.
    #[must_use]
    pub fn related(mut self, span: Span, why: impl Into<String>) -> Self {
        self.related.push((span, why.into()));
        self
    }

    /// Sets the hint for a fix.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Cuts long texts: they have names, which may be as long as the program.
    fn cut(&mut self) {
        let related = self.related.iter_mut().map(|(_, why)| why);
        let texts = [&mut self.message, &mut self.label].into_iter().chain(&mut self.help);
        for text in texts.chain(related).filter(|text| text.len() > MAX_TEXT) {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
            text.shrink_to_fit();
        }
    }
}

/// All diagnostics, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    counted: Counted,
}

/// Number of diagnostics found, including those that are not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    errors: usize,
    warnings: usize,
}

/// State of [`Diagnostics`] at some time; for [`Diagnostics::forget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    kept: usize,
    counted: Counted,
}

/// Maximum number of diagnostics to display. The others are only counted.
const MAX_SHOWN: usize = 50;
/// Maximum number of errors to keep, and of warnings: locating each of a hundred thousand takes a
/// minute.
const MAX_KEPT: usize = 1000;
/// Maximum length of a message, and of its other texts.
const MAX_TEXT: usize = 1000;
/// Maximum length of an excerpt. Longer lines are not useful.
const MAX_EXCERPT: usize = 400;

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn add(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.cut();
        // The same mistake is often found twice.
        if self.found.last() == Some(&diagnostic) {
            return;
        }
        let count = match diagnostic.severity {
            Severity::Error => &mut self.counted.errors,
            Severity::Warning => &mut self.counted.warnings,
        };
        *count += 1;
        if *count <= MAX_KEPT {
            self.found.push(diagnostic);
        }
    }

    /// Returns the number of errors, also of those that are not kept.
    pub fn errors(&self) -> usize {
        self.counted.errors
    }

    /// Returns true if there are errors, so the program is rejected.
    pub fn has_errors(&self) -> bool {
        self.counted.errors > 0
    }

    /// Returns the diagnostics that were kept.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Returns the current state, for [`Diagnostics::forget`].
    pub(crate) fn mark(&self) -> Mark {
        Mark { kept: self.found.len(), counted: self.counted }
    }

    /// Discards the diagnostics added after a mark.
    pub(crate) fn forget(&mut self, behind: Mark) {
        self.found.truncate(behind.kept);
        self.counted = behind.counted;
    }

    /// Formats the diagnostics with location, source line and hint. Errors come first, so warnings
    /// cannot hide them.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let of = |severity| self.found.iter().filter(move |one| one.severity == severity);
        let shown = of(Severity::Error).chain(of(Severity::Warning)).take(MAX_SHOWN);
        let mut out: Vec<String> = shown.map(|one| render(one, sources, &renderer)).collect();
        let more = (self.counted.errors + self.counted.warnings).saturating_sub(MAX_SHOWN);
        if more > 0 {
            out.push(format!("… and {more} more"));
        }
        out.join("\n\n")
    }
}

fn render(diagnostic: &Diagnostic, sources: &Sources, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut group = level.primary_title(diagnostic.message.as_str()).elements(
        excerpt(sources, diagnostic.span).map(|line| {
            let label = Some(diagnostic.label.as_str()).filter(|label| !label.is_empty());
            line.snippet(AnnotationKind::Primary, label)
        }),
    );
    for (span, why) in &diagnostic.related {
        if let Some(line) = excerpt(sources, *span) {
            group = group.element(line.snippet(AnnotationKind::Context, Some(why)));
        }
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// A source line, and a range in it.
struct Excerpt<'s> {
    file: &'s str,
    number: usize,
    line: &'s str,
    at: std::ops::Range<usize>,
}

impl<'s> Excerpt<'s> {
    fn snippet(
        &self,
        kind: AnnotationKind,
        label: Option<&'s str>,
    ) -> Snippet<'s, annotate_snippets::Annotation<'s>> {
        let mark = kind.span(self.at.clone()).label(label);
        Snippet::source(self.line).line_start(self.number).path(self.file).annotation(mark)
    }
}

fn excerpt(sources: &Sources, span: Span) -> Option<Excerpt<'_>> {
    let file = sources.file_of(span)?;
    let start = boundary(&file.text, (span.start - file.start) as usize);
    let line_start = file.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &file.text[line_start..];
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len()).min(MAX_EXCERPT);
    let line = &rest[..boundary(rest, end)];
    let at = (start - line_start).min(line.len());
    let length = (span.end.saturating_sub(span.start) as usize).max(1);
    let last = boundary(line, at + length).max(at);
    let number = file.text[..line_start].bytes().filter(|&byte| byte == b'\n').count() + 1;
    Some(Excerpt { file: &file.name, number, line, at: at..last })
}

/// Returns the last character boundary that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    let is_one = |at: &usize| text.is_char_boundary(*at);
    (0..=at.min(text.len())).rev().find(is_one).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        let long = || "ä".repeat(1 << 20);
        let span = Span { start: 0, end: 1 };
        let error = Diagnostic::error(span, long()).label(long()).help(long());
        let mut all = Diagnostics::default();
        all.add(error.related(span, long()));
        let one = all.iter().next().unwrap();
        let texts = [&one.message, &one.label, one.help.as_ref().unwrap(), &one.related[0].1];
        assert!(texts.iter().all(|text| text.len() < MAX_TEXT + 8 && text.ends_with("ä…")));
    }

    #[test]
    fn an_error_shows_its_line_the_expectation_and_a_fix() {
        let mut sources = Sources::default();
        sources.add("a.p4", "header h {\n    bit<8> ä b;\n}\n").unwrap();
        let mut all = Diagnostics::default();
        let error = Diagnostic::error(Span { start: 25, end: 26 }, "a field has one name");
        all.add(error.clone().label("expected `;`").help("end the field with `;`"));
        assert!(all.has_errors());
        let text = all.render(&sources, false);
        for part in
            ["error: a field has one name", "a.p4:2:14", "^ expected `;`", "help: end the field"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let mut all = Diagnostics::default();
        for at in 0..60 {
            all.add(Diagnostic::warning(Span { start: at, end: at + 1 }, "odd"));
        }
        assert!(!all.has_errors());
        assert!(all.render(&sources, true).ends_with("… and 10 more"));
        all.add(error);
        let text = all.render(&sources, false);
        assert!(text.starts_with("error: a field") && text.ends_with("… and 11 more"), "{text}");
    }

    #[test]
    fn places_beyond_the_text_are_its_end() {
        let mut sources = Sources::default();
        let mut all = Diagnostics::default();
        all.add(Diagnostic::error(Span { start: 7, end: 9 }, "nothing there"));
        assert!(all.render(&sources, false).contains("nothing there"));
        sources.add("a.p4", "").unwrap();
        assert!(all.render(&sources, false).contains("a.p4:1:1"));
    }

    #[test]
    fn diagnostics_beyond_the_limit_are_counted() {
        let mut all = Diagnostics::default();
        let error = |at| Diagnostic::error(Span { start: at, end: at }, "wrong");
        (0..900).for_each(|at| all.add(error(at)));
        let mark = all.mark();
        (900..100_000).for_each(|at| all.add(error(at)));
        assert_eq!(all.iter().count(), MAX_KEPT);
        assert!(all.render(&Sources::default(), false).ends_with("… and 99950 more"));
        let warning = |at| Diagnostic::warning(Span { start: at, end: at }, "odd");
        (0..100_000).for_each(|at| all.add(warning(at)));
        assert_eq!(all.iter().count(), 2 * MAX_KEPT);
        all.forget(mark);
        assert_eq!(all.iter().count(), 900);
        assert!(all.render(&Sources::default(), false).ends_with("… and 850 more"));
    }
}
