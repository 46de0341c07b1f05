//! What a command prints: text and tables for people, JSON for scripts.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Cursor home and clear: what every terminal since the VT100 understands.
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// Text for a terminal. Line breaks, tabs and colours (SGR, which diagnostics are rendered with) stay;
/// other control characters, and those that change the direction of writing, become `\u{..}`. Text of
/// objects, of programs' processes and of daemons may have any.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_control) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = colour(rest);
        if colour > 0 {
            shown.push_str(&rest[..colour]);
            rest = &rest[colour..];
        } else if let Some(control) = rest.chars().next() {
            shown.extend(control.escape_unicode());
            rest = &rest[control.len_utf8()..];
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

fn is_control(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// The length of a colour's sequence that text begins with: `ESC [ 1;31 m` (ECMA-48 section 8.3.117).
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
    if rest[end..].starts_with('m') { "\x1b[".len() + end + 1 } else { 0 }
}

/// Says something to people on standard error. Where that cannot be written, the exit code says the rest.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", plain(text));
}

/// Where and how to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether scripts are reading.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person watches the progress.
    pub(crate) fn is_watched(&self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }

    /// Prints a value as JSON, or what `text` makes of it.
    pub(crate) fn print<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let text = if self.json {
            serde_json::to_string_pretty(value).expect(
                "output has no map with odd keys, and its paths come from JSON or are texts",
            )
        } else {
            // The one sequence that is the command's own.
            let text = text(value);
            let (clear, rest) = match text.strip_prefix(CLEAR) {
                Some(rest) => (CLEAR, rest),
                None => ("", &*text),
            };
            format!("{clear}{}", plain(rest))
        };
        write(format!("{}\n", text.trim_end()).as_bytes())
    }

    /// Says what went wrong, on standard error.
    pub(crate) fn error(&self, text: &str, details: &Map<String, Value>) {
        let mut errors = std::io::stderr();
        // Where even this cannot be written, the exit code says the rest.
        let _ = if self.json {
            let mut object = details.clone();
            object.insert("error".into(), text.into());
            writeln!(errors, "{}", Value::Object(object))
        } else {
            writeln!(errors, "kaido: {}", plain(text))
        };
    }
}

/// Writes to standard output, to the last byte.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout();
    written(output.write_all(bytes).and_then(|()| output.flush()))
}

/// What became of writing to standard output.
pub(crate) fn written(done: std::io::Result<()>) -> Result<(), Failure> {
    match done {
        // A reader that has gone away (`| head`) is no error of the command's.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow::Error::new(error).context("cannot write the output")))
        }
        _ => Ok(()),
    }
}

/// `1 node`, `2 nodes`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// A table without frames: the columns line up, and `cut` and `awk` can read it.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    // Every cell is padded with a blank; the first column needs none.
    let bare = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    let lines: Vec<String> = table.to_string().lines().map(bare).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        let text = "one\ttwo\nthree \x1b]0;evil\x07\r\u{9b}2J\u{202e}ü";
        let shown = "one\ttwo\nthree \\u{1b}]0;evil\\u{7}\\u{d}\\u{9b}2J\\u{202e}ü";
        assert_eq!(plain(text), shown);
        assert!(matches!(plain("quiet"), Cow::Borrowed(_)));
        let coloured = "\x1b[1;31merror\x1b[0m";
        assert_eq!(plain(coloured), coloured);
        assert_eq!(plain("\x1b[31"), "\\u{1b}[31");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "test")), ["0 tests", "1 test", "2 tests"]);
    }
}
