//! Source files and source spans.

/// A source span: the bytes from `start` up to `end`. Positions count over all files, in the order
/// in which they were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Position of the first byte.
    pub start: u32,
    /// Position after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span from the start of this one to the end of `last`.
    pub fn to(self, last: Self) -> Self {
        // A macro argument may be located before the tokens that the macro puts in front of it.
        Self { start: self.start.min(last.start), end: self.end.max(last.end) }
    }
}

/// A source location for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location<'s> {
    /// Name of the file.
    pub file: &'s str,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A file that has been read.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) start: u32,
}

/// All files of a program, including included ones.
#[derive(Debug, Default)]
pub struct Sources {
    files: Vec<File>,
}

/// Maximum size of all files together in bytes. The largest known programs have a few hundred
/// thousand.
pub const MAX_BYTES: usize = 4 << 20;

impl Sources {
    /// Adds a file. Returns None if the total exceeds [`MAX_BYTES`].
    pub(crate) fn add(&mut self, name: &str, text: &str) -> Option<usize> {
        let start = self.files.last().map_or(0, |last| last.start + last.text.len() as u32 + 1);
        if start as usize + text.len() > MAX_BYTES {
            return None;
        }
        self.files.push(File { name: name.into(), text: text.into(), start });
        Some(self.files.len() - 1)
    }

    /// Returns the names of the files. The main file is the first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.name)
    }

    pub(crate) fn file(&self, index: usize) -> &File {
        &self.files[index]
    }

    /// Returns the file in which a span starts.
    pub(crate) fn file_of(&self, span: Span) -> Option<&File> {
        let behind = self.files.partition_point(|file| file.start <= span.start);
        self.files.get(behind.checked_sub(1)?)
    }

    /// Returns the text of a span.
    pub fn text(&self, span: Span) -> &str {
        let Some(file) = self.file_of(span) else { return "" };
        let at = |offset: u32| (offset - file.start) as usize;
        file.text.get(at(span.start)..at(span.end.max(span.start))).unwrap_or("")
    }

    /// Returns the location of the start of a span; None if no file has been read.
    pub fn locate(&self, span: Span) -> Option<Location<'_>> {
        let file = self.file_of(span)?;
        let end = ((span.start - file.start) as usize).min(file.text.len());
        let before = &file.text.as_bytes()[..end];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        Some(Location { file: &file.name, line, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_their_files() {
        let mut sources = Sources::default();
        assert_eq!(sources.locate(Span::default()), None);
        sources.add("a.p4", "one\ntwö three\n").unwrap();
        sources.add("b.p4", "four").unwrap();
        let place = |start, end| {
            let span = Span { start, end };
            let Location { file, line, column } = sources.locate(span).unwrap();
            (file.to_owned(), line, column, sources.text(span).to_owned())
        };
        assert_eq!(place(0, 3), ("a.p4".into(), 1, 1, "one".into()));
        assert_eq!(place(9, 14), ("a.p4".into(), 2, 5, "three".into()));
        assert_eq!(place(16, 20), ("b.p4".into(), 1, 1, "four".into()));
    }

    #[test]
    fn there_is_a_limit() {
        let mut sources = Sources::default();
        assert!(sources.add("a.p4", &" ".repeat(MAX_BYTES)).is_some());
        assert!(sources.add("b.p4", " ").is_none());
    }
}
