//! JSON Schemas of the output, generated from its types.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::table::{Command, Prints, TABLE};

/// Keywords whose schemas apply to the same object as the schema that contains them.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Returns the schema of all commands: `properties` has the output of each command by its name,
/// and `$defs` has [`Error`].
pub fn schema() -> Value {
    let mut generator = generator();
    generator.subschema_for::<Error>();
    let mut rows: BTreeMap<&str, Vec<&Command>> = BTreeMap::new();
    for row in TABLE {
        rows.entry(row.name).or_default().push(row);
    }
    let output = |(name, rows): (&&str, &Vec<&Command>)| {
        let mut schema = one_of(rows, &mut generator);
        match rows[0].prints {
            Prints::One => {}
            Prints::Stream => drop(schema.insert("x-stream".into(), json!(true))),
            Prints::StreamWith(option) => drop(schema.insert("x-stream".into(), json!(option))),
        }
        ((*name).to_owned(), schema.to_value())
    };
    let properties: Map<_, _> = rows.iter().map(output).collect();
    finish(
        generator,
        json_schema!({
            "title": "Output of kaido --json",
            "description": "Each property is the output of a command, by the command's words. `x-stream` is true if \
                the command prints a stream of such values, or is the option with which it does. $defs/Error is \
                printed on standard error if a command fails.",
            "type": "object",
            "properties": properties,
        }),
    )
}

/// Returns the schema of a command's output, which `rows` are all rows of.
pub fn schema_of(rows: &[&Command]) -> Value {
    let mut generator = generator();
    let schema = one_of(rows, &mut generator);
    finish(generator, schema)
}

/// Returns the schema of errors.
pub fn error_schema() -> Value {
    let mut generator = generator();
    let schema = generator.subschema_for::<Error>();
    finish(generator, schema)
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Returns the schema of a value that has the type of one of the rows.
fn one_of(rows: &[&Command], generator: &mut SchemaGenerator) -> Schema {
    match rows {
        [row] => (row.schema)(generator),
        rows => {
            let types = rows.iter().map(|row| (row.schema)(generator).to_value());
            json_schema!({ "anyOf": types.collect::<Vec<_>>() })
        }
    }
}

/// Adds the definitions, and denies unknown members.
fn finish(mut generator: SchemaGenerator, mut schema: Schema) -> Value {
    let definitions = generator.take_definitions(false);
    schema.insert("$defs".into(), definitions.into());
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    Closed.transform(&mut schema);
    schema.to_value()
}

/// Denies members of objects that their schema does not list.
struct Closed;

impl Transform for Closed {
    fn transform(&mut self, schema: &mut Schema) {
        let is_listed = schema.get("properties").is_some();
        let is_open = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .all(|keyword| schema.get(*keyword).is_none());
        let is_merged = is_listed && IN_PLACE.iter().any(|keyword| schema.get(*keyword).is_some());
        if is_listed && is_open {
            // Members may also be listed by the schemas of a flattened enum.
            let keyword = if is_merged { "unevaluatedProperties" } else { "additionalProperties" };
            schema.insert(keyword.into(), false.into());
        }
        if !is_merged {
            return transform_subschemas(self, schema);
        }
        let mut merged = Vec::new();
        for keyword in IN_PLACE {
            merged.extend(schema.remove(keyword).map(|parts| (keyword, parts)));
        }
        transform_subschemas(self, schema);
        for (keyword, mut parts) in merged {
            // The parts remain open, but not the values of their members.
            for part in parts.as_array_mut().into_iter().flatten() {
                if let Ok(part) = <&mut Schema>::try_from(part) {
                    transform_subschemas(self, part);
                }
            }
            schema.insert(keyword.into(), parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_names_of_their_own() {
        // The generator numbers types that have the same name.
        let schema = schema();
        let names = schema["$defs"].as_object().unwrap().keys();
        let numbered = |name: &&String| name.ends_with('2') || name.ends_with('3');
        assert_eq!(names.filter(numbered).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn unknown_members_are_denied() {
        let schema = schema();
        assert_eq!(schema["$defs"]["LabUp"]["additionalProperties"], false);
        assert_eq!(schema["$defs"]["EmulatedDirection"]["additionalProperties"], false);
        assert_eq!(schema["$defs"]["JournalEntry"]["unevaluatedProperties"], false);
        assert_eq!(schema["$defs"]["Topology"]["additionalProperties"], false);
    }

    #[test]
    fn members_that_are_null_are_required() {
        let schema = schema();
        let required = schema["$defs"]["ImportedLab"]["required"].as_array().unwrap();
        assert_eq!(required.len(), 4, "{required:?}");
    }
}
