//! JSON Schemas of topology, data plane and tenants files, and of the output of commands, generated
//! from the types that parse or print them.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;

/// Generates a schema.
type Schema = fn() -> Value;

/// Generators, output paths for editors and scripts, and example files to validate.
const SCHEMAS: [(Schema, &str, Option<&str>); 4] = [
    (topology_file::json_schema, "docs/topology.schema.json", Some("labs")),
    (dataplane_file::json_schema, "docs/dataplane.schema.json", Some("labs/dataplane")),
    (tenants_file::json_schema, "docs/tenants.schema.json", Some("labs/xsk")),
    (output::schema, "docs/output.schema.json", None),
];

pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    for (schema, path, examples) in SCHEMAS {
        let schema = schema();
        let text = format!("{schema:#}\n");
        let file = root.join(path);
        if check {
            let known =
                std::fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
            if known != text {
                bail!("{path} is out of date: run `cargo xtask schema`");
            }
        } else {
            std::fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        }
        if path.contains("topology") {
            crate::options::run(root, &schema, check)?;
        }
        let Some(examples) = examples else {
            crate::outputs::run(root, &schema, check)?;
            jsonschema::validator_for(&schema).context("the schema itself is wrong")?;
            println!("{path} is up to date");
            continue;
        };
        let count = check_examples(&schema, &root.join(examples))?;
        println!("{path} is up to date, {count} files in {examples}/ fit it");
    }
    Ok(())
}

/// Validates every file of a directory. Returns their number.
fn check_examples(schema: &Value, directory: &Path) -> anyhow::Result<usize> {
    let validator = jsonschema::validator_for(schema).context("the schema itself is wrong")?;
    let mut problems = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
    {
        let path = entry?.path();
        if !path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let found = misfits(&validator, &text);
        problems.extend(found.into_iter().map(|found| format!("{}: {found}", path.display())));
    }
    if count == 0 {
        bail!("{} has no files to check", directory.display());
    }
    if !problems.is_empty() {
        bail!("files do not fit the schema:\n  {}", problems.join("\n  "));
    }
    Ok(count)
}

/// Returns the violations with their positions in the file.
fn misfits(validator: &jsonschema::Validator, text: &str) -> Vec<String> {
    match serde_saphyr::from_str::<Value>(text) {
        Ok(value) => validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_names_its_place() {
        let validator = jsonschema::validator_for(&topology_file::json_schema()).unwrap();
        let right = "name: a\nnodes: {h1: {}, h2: {}}\nlinks: [h1-h2: &wan {rate: 5mbit}]\n";
        assert_eq!(misfits(&validator, right), [""; 0]);
        let wrong = misfits(&validator, "name: a\nnodes: {h1: {router: abacus}}\n");
        assert!(wrong.iter().any(|text| text.contains("/nodes/h1")), "{wrong:?}");
        assert!(!misfits(&validator, "name: [a\n").is_empty());
    }
}
