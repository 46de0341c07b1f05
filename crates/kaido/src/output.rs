//! What a command prints: text and tables for people, JSON for scripts.

use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Cursor home and clear: what every terminal since the VT100 understands.
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// Says something to people on standard error. Where that cannot be written, the exit code says the rest.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
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
            text(value)
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
            writeln!(errors, "kaido: {text}")
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
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "test")), ["0 tests", "1 test", "2 tests"]);
    }
}
