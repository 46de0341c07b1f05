//! Rows of `bench/results/*.json`, and patterns that select them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

pub(crate) const DIRECTORY: &str = "bench/results/";

/// Rows by file, in the order of each file.
pub(crate) type Results = BTreeMap<String, Vec<Row>>;

/// One result, as `kaido bench --json` writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Median of the runs.
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) baseline: Option<f64>,
    /// Ratio to the baseline: above 1, Kaido is better.
    pub(crate) ratio: Option<f64>,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Reads all files. Keys are file names without the directory.
pub(crate) fn read(root: &Path) -> anyhow::Result<Results> {
    let mut results = Results::new();
    for entry in std::fs::read_dir(root.join(DIRECTORY)).context(DIRECTORY)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).with_context(|| format!("{DIRECTORY}{file}"))?;
        results.insert(file.clone(), parse(&text).with_context(|| format!("{DIRECTORY}{file}"))?);
    }
    ensure!(!results.is_empty(), "{DIRECTORY} has no JSON files");
    Ok(results)
}

pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Row>> {
    let rows: Vec<Row> = serde_json::from_str(text)?;
    for (index, row) in rows.iter().enumerate() {
        let is_known = rows[..index].iter().any(|other| other.name == row.name);
        ensure!(!is_known, "two rows have the name `{}`", row.name);
    }
    Ok(rows)
}

/// Selects rows by name: a whole name, a prefix that ends with `/`, or a pattern with one `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl Pattern {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        ensure!(!text.is_empty(), "a pattern is empty: remove the comma");
        ensure!(text.matches('*').count() <= 1, "`{text}` has more than one `*`");
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        if let Some((start, end)) = self.0.split_once('*') {
            let rest = name.strip_prefix(start);
            return rest.is_some_and(|rest| rest.ends_with(end));
        }
        if self.0.ends_with('/') { name.starts_with(&self.0) } else { name == self.0 }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"name": "up/100", "value": 0.25, "unit": "s", "baseline": null,
        "ratio": null, "low": 0.2, "high": 0.5}"#;

    #[test]
    fn rows_are_as_the_command_writes_them() {
        let rows = parse(&format!("[{ROW}]")).unwrap();
        assert_eq!((rows[0].name.as_str(), rows[0].value, rows[0].ratio), ("up/100", 0.25, None));
        let twice = parse(&format!("[{ROW}, {ROW}]")).unwrap_err().to_string();
        assert_eq!(twice, "two rows have the name `up/100`");
        assert!(parse(r#"[{"name": "up/100", "median": 0.25}]"#).is_err());
    }

    #[test]
    fn files_without_rows_of_json_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(DIRECTORY);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("README.md"), "text").unwrap();
        assert!(read(root.path()).is_err());
        std::fs::write(directory.join("lab.json"), format!("[{ROW}]")).unwrap();
        assert_eq!(read(root.path()).unwrap()["lab.json"].len(), 1);
        std::fs::write(directory.join("lab.json"), "[").unwrap();
        assert_eq!(read(root.path()).unwrap_err().to_string(), "bench/results/lab.json");
    }

    #[test]
    fn patterns_are_names_prefixes_or_have_a_star() {
        let matches = |pattern: &str, name: &str| Pattern::parse(pattern).unwrap().matches(name);
        assert!(matches("End/64", "End/64") && !matches("End/64", "End/640"));
        assert!(matches("End/", "End/64") && !matches("End/", "raw/End/64"));
        assert!(matches("*-flows", "End/64-256-flows") && !matches("*-flows", "End/64"));
        assert!(matches("raw/*/64", "raw/End.X/64") && !matches("ab*ba", "aba"));
        assert!(Pattern::parse("a*b*").is_err() && Pattern::parse("").is_err());
    }
}
