//! A serde deserializer over the tree.

use std::cell::RefCell;

use serde::de::{self, IntoDeserializer, Unexpected, Visitor};

use super::elements::{List, Map, Within};
use super::error::Error;
use super::tree::{Tree, Value};

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
                visitor.visit_seq(List { items, next: 0, within: Within::new(self) })
            }
            Value::Map(entries) => {
                visitor.visit_map(Map { entries, next: 0, within: Within::new(self) })
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
