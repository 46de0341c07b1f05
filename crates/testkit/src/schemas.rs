//! Schemas of the JSON output: answers of commands are validated against them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use output::Command;
use serde_json::Value;

type Validators = Mutex<HashMap<&'static str, Arc<Validator>>>;

/// Validators of the commands used so far, and of errors.
static VALIDATORS: LazyLock<Validators> = LazyLock::new(Validators::default);

/// Asserts that a value is valid output of a command line, given without `kaido`.
#[track_caller]
pub fn check_output(arguments: &[&str], value: &Value) {
    let rows: Vec<&Command> = Command::of(arguments).collect();
    let Some(row) = rows.first() else { panic!("{arguments:?} has no schema: {value}") };
    check(row.name, || output::schema_of(&rows), value);
}

/// Asserts that a value is a valid error.
#[track_caller]
pub fn check_error(value: &Value) {
    check("error", output::error_schema, value);
}

/// Parses the only value that a command has printed, and asserts that it is valid.
#[track_caller]
pub fn value_of(arguments: &[&str], printed: &[u8]) -> Value {
    let mut values = values_of(arguments, printed);
    assert_eq!(values.len(), 1, "{arguments:?}: not one value: {values:?}");
    values.remove(0)
}

/// Parses all values that a command has printed, and asserts that they are valid.
#[track_caller]
pub fn values_of(arguments: &[&str], printed: &[u8]) -> Vec<Value> {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(printed).into_iter().collect();
    let Ok(values) = values else {
        panic!("{arguments:?}: not JSON: {}", String::from_utf8_lossy(printed));
    };
    values.iter().for_each(|value| check_output(arguments, value));
    values
}

#[track_caller]
fn check(name: &'static str, schema: impl FnOnce() -> Value, value: &Value) {
    let validator = {
        // A test that has failed meanwhile leaves the map as it was.
        let mut known = VALIDATORS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let new = || Arc::new(jsonschema::validator_for(&schema()).expect("a valid schema"));
        known.entry(name).or_insert_with(new).clone()
    };
    let errors = validator.iter_errors(value);
    let errors = errors.map(|error| format!("{}: {error}", error.instance_path()));
    let errors: Vec<String> = errors.take(5).collect();
    assert!(errors.is_empty(), "the output of `{name}` does not fit its schema: {errors:#?}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn valid_values_fit() {
        check_output(&["lab", "down", "x"], &json!({ "lab": "x", "seconds": 0.1 }));
        check_error(&json!({ "error": "no" }));
        let changed = json!({ "link": "a-b", "changed": ["a:b", "b:a"] });
        check_output(&["lab", "link", "a-b", "down"], &changed);
        let entry = json!({ "at": 1.5, "what": "interface-gone", "node": "a", "interface": "b" });
        let events = json!({ "ready_for": null, "events": [], "others": [entry] });
        check_output(&["lab", "events"], &events);
        let values = values_of(
            &["p4", "digest"],
            br#"{"digest": "a", "data": {"b": "1"}} {"digest": "a", "data": "2"}"#,
        );
        assert_eq!(values.len(), 2);
    }

    #[test]
    #[should_panic(expected = "Additional properties")]
    fn unknown_members_do_not_fit() {
        let value = json!({ "lab": "x", "seconds": 0.1, "more": 1 });
        check_output(&["lab", "down", "x"], &value);
    }

    #[test]
    #[should_panic(expected = "Unevaluated properties")]
    fn unknown_members_of_tagged_values_do_not_fit() {
        let entry = json!({ "at": 1.5, "what": "emulator-ended", "node": "a" });
        let events = json!({ "ready_for": null, "events": [], "others": [entry] });
        check_output(&["lab", "events"], &events);
    }

    #[test]
    #[should_panic(expected = "required")]
    fn missing_members_do_not_fit() {
        check_output(&["lab", "down", "x"], &json!({ "lab": "x" }));
    }

    #[test]
    #[should_panic(expected = "has no schema")]
    fn commands_without_a_schema_are_refused() {
        check_output(&["lab", "exec", "r1"], &json!({}));
    }
}
