//! The table of commands in `docs/json.md`, generated from the schema of their output.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

const PAGE: &str = "docs/json.md";
const MARKER: &str = "<!-- cargo xtask schema: the output of commands -->\n";

/// Writes the table after its marker, or fails if it is out of date.
pub(crate) fn run(root: &Path, schema: &Value, check: bool) -> anyhow::Result<()> {
    crate::options::update(root, PAGE, MARKER, &table(schema)?, check)
}

fn table(schema: &Value) -> anyhow::Result<String> {
    let commands = schema["properties"].as_object().context("the schema has no commands")?;
    let mut text = String::from("| command | output | |\n|---|---|---|\n");
    for (command, output) in commands {
        let stream = match &output["x-stream"] {
            Value::Bool(true) => "stream".to_owned(),
            Value::String(option) => format!("stream with `{option}`"),
            _ => String::new(),
        };
        let types = of(output).with_context(|| command.clone())?;
        writeln!(text, "| `kaido {command}` | {types} | {stream} |")?;
    }
    Ok(text)
}

/// Names the types of a command's output.
fn of(output: &Value) -> Option<String> {
    if let Some(all) = output["anyOf"].as_array() {
        return Some(all.iter().map(of).collect::<Option<Vec<_>>>()?.join(" or "));
    }
    if output["type"] == "array" {
        return Some(format!("list of {}", of(&output["items"])?));
    }
    Some(format!("`{}`", output["$ref"].as_str()?.rsplit_once('/')?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_types_and_streams() {
        let table = table(&output::schema()).unwrap();
        for row in [
            "| `kaido lab ls` | list of `LabSummary` |  |",
            "| `kaido lab graph` | `Topology` or `Drawing` |  |",
            "| `kaido app watch` | `Decision` | stream |",
            "| `kaido network` | list of `NetworkNode` | stream with `--watch` |",
        ] {
            assert!(table.contains(row), "{row}: {table}");
        }
    }
}
