//! Lists and maps in file order, in which the errors of all elements are found.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A map in file order. An element that cannot be read is left out: the deserializer has recorded
/// its error, and reads on to find those of the others.
#[derive(Debug)]
pub struct Entries<V, K = String>(pub Vec<(K, V)>);

impl<V, K> Default for Entries<V, K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Entries<V, K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor<V, K>(PhantomData<(K, V)>);
        impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<V, K> {
            type Value = Entries<V, K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of `name: {…}`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<V, K>, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0));
                // The deserializer records the errors of skipped elements (`de::De`).
                loop {
                    match map.next_key() {
                        Ok(None) => return Ok(Entries(entries)),
                        Ok(Some(key)) => {
                            if let Ok(value) = map.next_value() {
                                entries.push((key, value));
                            }
                        }
                        Err(_) => {}
                    }
                }
            }
        }
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

impl<V: JsonSchema, K: JsonSchema> JsonSchema for Entries<V, K> {
    fn schema_name() -> Cow<'static, str> {
        let (key, value) = (K::schema_name(), V::schema_name());
        match &*key {
            "string" => format!("MapOf{value}").into(),
            _ => format!("MapOf{value}By{key}").into(),
        }
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<V>();
        if K::schema_name() == "string" {
            return json_schema!({"type": "object", "additionalProperties": value});
        }
        let key = generator.subschema_for::<K>();
        json_schema!({"type": "object", "propertyNames": key, "additionalProperties": value})
    }
}

/// A list. An element that cannot be read is left out, like those of [`Entries`].
#[derive(Debug)]
pub struct Items<T>(pub Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
            type Value = Items<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<T>, A::Error> {
                let mut items = Vec::with_capacity(list.size_hint().unwrap_or(0));
                loop {
                    match list.next_element() {
                        Ok(None) => return Ok(Items(items)),
                        Ok(Some(item)) => items.push(item),
                        Err(_) => {}
                    }
                }
            }
        }
        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Items<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Vec<T>>()
    }
}
