//! A serde deserializer over the tree, with locations in its errors.

use std::cell::RefCell;

use serde::de::{self, IntoDeserializer, Unexpected, Visitor};

use super::elements::{List, Map, Within};
use super::nearest::suggest;
use super::tree::{Span, Step, Tree, Value};

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
    fn new(message: String, help: Option<String>) -> Self {
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

/// Splits "message: write this" into message and help; the crate's own parsing errors have this
/// form.
pub(crate) fn split_help(text: &str) -> (String, Option<String>) {
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
        Unexpected::Str(text) => format!("`{text}`"),
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

/// Deserializes values from a tree.
///
/// A visitor of a list or a map may continue after an element with an error (`Entries`, `Items`).
/// The error is not lost: it is added to `passed_over`.
#[derive(Clone, Copy)]
pub(crate) struct De<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) passed_over: &'t RefCell<Vec<Error>>,
}

impl<'t> De<'t> {
    fn is_null(self) -> bool {
        matches!(&self.tree.value, Value::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null"))
    }

    fn any<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.tree.value {
            _ if self.is_null() => visitor.visit_unit(),
            Value::Scalar { text, plain: true } if text == "true" => visitor.visit_bool(true),
            Value::Scalar { text, plain: true } if text == "false" => visitor.visit_bool(false),
            Value::Scalar { text, plain } => match text.parse::<u64>() {
                Ok(number) if *plain => visitor.visit_u64(number),
                _ => visitor.visit_str(text),
            },
            Value::List(items) => {
                visitor.visit_seq(List { items, next: 0, within: Within::of(self) })
            }
            Value::Map(entries) => {
                visitor.visit_map(Map { entries, next: 0, within: Within::of(self) })
            }
        }
    }

    fn text<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.tree.value {
            // A scalar such as `42` or `true` is a string if a string is expected.
            Value::Scalar { text, .. } if !self.is_null() => visitor.visit_str(text),
            // In [a::, b::] YAML parses the colon before the comma as a mapping indicator.
            Value::Map(entries) if entries.len() == 1 && entries[0].key.ends_with(':') => {
                let address = format!("{}:", entries[0].key);
                let message = format!("`{address}` reads as a key here");
                Err(Error::new(message, Some(format!("write \"{address}\" in quotes"))))
            }
            _ => self.any(visitor),
        }
    }
}

impl<'de> de::Deserializer<'de> for De<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.any(visitor).map_err(|error| error.at(self.tree.span))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.text(visitor).map_err(|error| error.at(self.tree.span))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let result = match &self.tree.value {
            Value::Scalar { text, .. } => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::List(_) | Value::Map(_) => Err(Error::new(
                "expected one word".into(),
                Some(format!("use {}", variants.join(", "))),
            )),
        };
        result.map_err(|error: Error| error.at(self.tree.span))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // Serde would map the items of a list to the fields in order.
        if matches!(self.tree.value, Value::List(_)) {
            let error: Error = de::Error::invalid_type(Unexpected::Seq, &visitor);
            return Err(error.at(self.tree.span));
        }
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        seq tuple tuple_struct map ignored_any
    }
}
