//! The table of link options in `docs/topology.md`, generated from the schema.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

const PAGE: &str = "docs/topology.md";
const MARKER: &str = "<!-- cargo xtask schema: the options of a link -->\n";

/// Writes the table after its marker, or fails if it is out of date.
pub(crate) fn run(root: &Path, schema: &Value, check: bool) -> anyhow::Result<()> {
    update(root, PAGE, MARKER, &table(schema)?, check)
}

/// Writes a table after its marker in a page, or fails if it is out of date.
pub(crate) fn update(
    root: &Path,
    name: &str,
    marker: &str,
    table: &str,
    check: bool,
) -> anyhow::Result<()> {
    let path = root.join(name);
    let page = std::fs::read_to_string(&path).with_context(|| name.to_owned())?;
    let (before, after) = page.split_once(marker).with_context(|| format!("{name}: {marker}"))?;
    let rest = after.trim_start_matches('\n').lines().skip_while(|line| line.starts_with('|'));
    let rest = rest.collect::<Vec<_>>().join("\n");
    let new = format!("{before}{marker}\n{table}\n{}", rest.trim());
    let new = format!("{}\n", new.trim_end());
    if check {
        ensure!(page == new, "{name} is out of date: run `cargo xtask schema`");
        return Ok(());
    }
    std::fs::write(&path, new).with_context(|| format!("cannot write {name}"))
}

fn table(schema: &Value) -> anyhow::Result<String> {
    let properties = schema["$defs"]["LinkOptions"]["properties"].as_object();
    let mut text = String::from("| option | meaning |\n|---|---|\n");
    for (name, option) in properties.context("the schema has no LinkOptions")? {
        let meaning = option["description"].as_str().with_context(|| name.clone())?;
        writeln!(text, "| `{name}` | {} |", meaning.replace('\n', " ").trim_end_matches('.'))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_out_of_date_is_found() {
        let root = tempfile::tempdir().unwrap();
        let schema = topology_file::json_schema();
        let write = |text: &str| {
            std::fs::create_dir_all(root.path().join("docs")).unwrap();
            std::fs::write(root.path().join(PAGE), text).unwrap();
        };
        write(&format!("# A\n\n{MARKER}\n| old |\n\nEnd\n"));
        assert!(run(root.path(), &schema, true).is_err());
        run(root.path(), &schema, false).unwrap();
        run(root.path(), &schema, true).unwrap();
        let page = std::fs::read_to_string(root.path().join(PAGE)).unwrap();
        assert!(page.contains("| `delay` | Delay of each packet: `20ms` |"), "{page}");
        assert!(page.ends_with("|\n\nEnd\n") && !page.contains("old"), "{page}");
        write("# A\n");
        assert!(run(root.path(), &schema, true).is_err());
    }
}
