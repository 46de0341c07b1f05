//! Output of commands: text and tables for people, JSON for scripts.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};
use output::Printed;
use output::error::Error;

use crate::failure::Failure;

/// Cursor home and clear screen, supported by every terminal since the VT100.
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// Escapes text for a terminal. Keeps line breaks and tabs. Other control characters, and those that change
/// the writing direction, become `\u{..}`. Text of objects, of programs' processes and of daemons may
/// contain any of them.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    escaped(text, |_| 0)
}

/// Does the same, but keeps the colors of rendered diagnostics.
fn colored(text: &str) -> Cow<'_, str> {
    escaped(text, color)
}

/// Escapes text, except for sequences that `kept` returns the length of.
fn escaped(text: &str, kept: impl Fn(&str) -> usize) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(is_control) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = kept(rest);
        if kept > 0 {
            shown.push_str(&rest[..kept]);
            rest = &rest[kept..];
        } else if let Some(control) = rest.chars().next() {
            shown.extend(control.escape_unicode());
            rest = &rest[control.len_utf8()..];
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Escapes the control characters that JSON permits: U+007F to U+009F, which some terminals act on, and those
/// that change the writing direction. They are in strings only, whose values stay the same.
pub(crate) fn escaped_json(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_control(c) {
            // All of them are below U+10000.
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

fn is_control(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Returns the length of the color sequence at the start of the text: `ESC [ 1;31 m` (ECMA-48 section
/// 8.3.117). Only those of the renderer count. Others could hide what follows: 8 conceals it, and black or
/// white text may have the color of the background.
fn color(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let Some((parameters, _)) = rest.split_once('m') else { return 0 };
    let is_harmless = |one: &str| {
        matches!(one, "" | "0" | "1") || matches!(one.as_bytes(), [b'3' | b'9', b'1'..=b'6'])
    };
    match parameters.split(';').all(is_harmless) {
        true => "\x1b[".len() + parameters.len() + "m".len(),
        false => 0,
    }
}

/// Prints a message for people on standard error. If that fails, the exit code is the only report.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", colored(text));
}

/// The output format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns true if the output is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Returns true if a person watches the progress.
    pub(crate) fn is_watched(&self) -> bool {
        !self.json && std::io::stderr().is_terminal()
    }

    /// Prints a value as JSON, or the text that `text` makes of it. Only types that have a schema can be
    /// printed.
    pub(crate) fn print<T: Printed>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let text = if self.json {
            escaped_json(
                serde_json::to_string_pretty(value).expect("output has no map with odd keys"),
            )
        } else {
            // `CLEAR` is the only control sequence that the command itself may print.
            let text = text(value);
            let (clear, rest) = match text.strip_prefix(CLEAR) {
                Some(rest) => (CLEAR, rest),
                None => ("", &*text),
            };
            format!("{clear}{}", plain(rest))
        };
        write(format!("{}\n", text.trim_end()).as_bytes())
    }

    /// Reports a failure once, with its causes, and returns the exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> ExitCode {
        let (text, mut errors) = (failure.text(), std::io::stderr());
        // If this cannot be written, the exit code is the only report.
        let _ = if self.json {
            let error = Error { error: text, details: failure.details().clone() };
            let error = serde_json::to_string(&error).expect("texts and numbers are JSON");
            writeln!(errors, "{}", escaped_json(error))
        } else {
            writeln!(errors, "kaido: {}", colored(&text))
        };
        failure.code()
    }
}

/// Writes all bytes to standard output and flushes it.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut output = std::io::stdout();
    written(output.write_all(bytes).and_then(|()| output.flush()))
}

/// Converts the result of a write to standard output.
pub(crate) fn written(done: std::io::Result<()>) -> Result<(), Failure> {
    match done {
        // A reader that has gone away (`| head`) is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow::Error::new(error).context("cannot write the output")))
        }
        _ => Ok(()),
    }
}

/// Formats a count with its noun: `1 node`, `2 nodes`.
pub(crate) fn counted(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// Formats a table without borders: columns are aligned, and `cut` and `awk` can parse it.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    // comfy_table pads every cell with a blank, which the first column does not need.
    let bare = |line: &str| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned();
    let lines: Vec<String> = table.to_string().lines().map(bare).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use document::Problems;
    use p4::diagnostic::{Diagnostic, Diagnostics};
    use p4::source::{Sources, Span};

    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        let text = "one\ttwo\nthree \x1b]0;evil\x07\r\u{9b}2J\u{202e}ü";
        let shown = "one\ttwo\nthree \\u{1b}]0;evil\\u{7}\\u{d}\\u{9b}2J\\u{202e}ü";
        assert_eq!(plain(text), shown);
        assert!(matches!(plain("quiet"), Cow::Borrowed(_)));
    }

    #[test]
    fn control_characters_are_escaped_in_json() {
        let text = "\u{9b}8m\u{7f}\u{202e}\u{1b}ü";
        let json = serde_json::to_string(&serde_json::json!({ text: [text, 1] })).unwrap();
        let shown = escaped_json(json.clone());
        assert_eq!(shown, r#"{"\u009b8m\u007f\u202e\u001bü":["\u009b8m\u007f\u202e\u001bü",1]}"#);
        let [before, after] = [&json, &shown]
            .map(|json| serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
        assert_eq!(before, after);
    }

    /// Text of others may not hide what follows it.
    #[test]
    fn only_the_colors_of_diagnostics_are_kept() {
        let rendered = Problems::at_line("a.yaml", "one\n", 1, "wrong", "mend it").render(true);
        assert!(rendered.contains('\x1b'));
        let mut diagnostics = Diagnostics::default();
        diagnostics.add(Diagnostic::error(Span::default(), "wrong").help("mend it"));
        diagnostics.add(Diagnostic::warning(Span::default(), "odd"));
        let compiled = diagnostics.render(&Sources::default(), true);
        for kept in [&*rendered, &compiled, "\x1b[1;31merror\x1b[0m", "\x1b[m"] {
            assert_eq!(colored(kept), kept);
        }
        for text in ["\x1b[8mx", "\x1b[0;8mx", "\x1b[30mx", "\x1b[97mx", "\x1b[38;5;0mx", "\x1b[31"]
        {
            assert_eq!(colored(text), text.replace('\x1b', "\\u{1b}"));
        }
        assert_eq!(plain("\x1b[31mx"), "\\u{1b}[31mx");
    }

    #[test]
    fn one_takes_the_singular() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "test")), ["0 tests", "1 test", "2 tests"]);
    }
}
