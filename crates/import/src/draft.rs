//! The common part of all importers: a lab with the other tool's names.

use document::{Outline, Problems};

use crate::Note;

/// Resulting kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Frr,
    Linux,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

/// Options of a link, in the topology file's syntax.
pub(crate) type Options = Vec<(&'static str, String)>;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) ends: [usize; 2],
    pub(crate) options: Options,
    pub(crate) line: usize,
}

#[derive(Debug)]
pub(crate) struct Lan {
    pub(crate) name: String,
    pub(crate) members: Vec<usize>,
    pub(crate) options: Options,
    pub(crate) line: usize,
}

/// Maximum number of notes.
const MAX_NOTES: usize = 10_000;
/// Maximum length of a name in bytes. Each key of a node can be a note with the node's name.
const MAX_NAME: usize = 255;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    pub(crate) lans: Vec<Lan>,
    notes: Vec<Note>,
    /// Number of notes beyond the maximum.
    more: usize,
}

impl Draft {
    pub(crate) fn note(&mut self, line: impl Into<Option<usize>>, text: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(Note { line: line.into(), text: text.into() });
        } else {
            self.more += 1;
        }
    }

    /// Takes the notes, ordered by line.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.sort_by_key(|note| note.line.unwrap_or(usize::MAX));
        if self.more > 0 {
            let text = format!("{} more are not listed", self.more);
            notes.push(Note { line: None, text });
        }
        notes
    }

    /// Notes a key that cannot be represented in a topology file, with its value if that is short.
    pub(crate) fn left_out(&mut self, what: &str, value: &Outline) {
        if !value.is_nothing() {
            let text = format!("{what} is not carried over{}", shown(value));
            self.note(value.line, text);
        }
    }
}

/// Formats a scalar as ` (value)`; returns an empty string for other values.
fn shown(value: &Outline) -> String {
    match value.word() {
        Some(word) if word.len() <= 60 && !word.contains('\n') => format!(" ({word})"),
        _ => String::new(),
    }
}

/// The source file, for error messages.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// Rejects a name of excessive length. `what` describes the name in the
    /// message.
    pub(crate) fn check_name(&self, line: usize, what: &str, name: &str) -> Result<(), Problems> {
        if name.len() <= MAX_NAME {
            return Ok(());
        }
        let message = format!("{what} has {} bytes", name.len());
        Err(self.wrong(line, &message, &format!("use at most {MAX_NAME}")))
    }

    pub(crate) fn wrong(&self, line: usize, message: &str, help: &str) -> Problems {
        Problems::at_line(self.file, self.text, line, message, help)
    }
}
