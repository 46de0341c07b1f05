//! Errors of deserialization, with their locations and fixes.

use serde::de::{self, Unexpected};

use super::cut::{MOST_SHOWN, begin};
use super::nearest::suggest;
use super::tree::{Span, Step};

/// Deserialization error of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Error {
    /// Location of the innermost value that could not be read.
    pub(crate) span: Option<Span>,
    /// Path to that value, last step first.
    pub(crate) path: Vec<Step>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Error {
    pub(super) fn new(message: String, help: Option<String>) -> Self {
        Self { span: None, path: vec![], message, help }
    }

    pub(super) fn at(mut self, span: Span) -> Self {
        self.span.get_or_insert(span);
        self
    }

    pub(super) fn under(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }
}

/// Splits "message: write this" into message and help. Errors of `FromStr` types have this form.
pub fn split_help(text: &str) -> (String, Option<String>) {
    match [": write ", ": use "].iter().filter_map(|mark| text.find(mark)).min() {
        Some(at) => (text[..at].into(), Some(text[at + 2..].into())),
        None => (text.into(), None),
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn expectation(expected: &dyn de::Expected) -> String {
    match expected.to_string().as_str() {
        "u16" => "a whole number up to 65535".into(),
        "u64" | "u32" | "u8" => "a whole number".into(),
        "a boolean" => "true or false".into(),
        other if other.starts_with("struct ") => "a map of `key: value`".into(),
        other => other.into(),
    }
}

fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Str(text) => format!("`{}`", begin(text, MOST_SHOWN)),
        Unexpected::Unsigned(number) => format!("`{number}`"),
        Unexpected::Signed(number) => format!("`{number}`"),
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unit => "nothing".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a map".into(),
        other => other.to_string(),
    }
}

impl de::Error for Error {
    fn custom<T: std::fmt::Display>(text: T) -> Self {
        let (message, help) = split_help(&text.to_string());
        Self::new(message, help)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expectation(expected);
        let help = match unexpected {
            Unexpected::Unit if expected.contains("map") => "write `{}` if there is nothing to say",
            _ => "",
        };
        let message = format!("expected {expected}, found {}", found(unexpected));
        Self::new(message, (!help.is_empty()).then(|| help.into()))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let help = suggest(field, expected.iter().copied());
        let list = expected.join(", ");
        let help = help.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        Self::new(format!("unknown key `{field}`"), Some(format!("{help}allowed here: {list}")))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let near = suggest(variant, expected.iter().copied())
            .map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let list = expected.join(", ");
        Self::new(format!("`{variant}` is not known here"), Some(format!("{near}use {list}")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"), Some(format!("add `{field}:`")))
    }
}
