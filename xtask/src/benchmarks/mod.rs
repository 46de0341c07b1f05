//! Tables of `docs/benchmarks.md`, generated from `bench/results/*.json` and `bench/targets.yaml`.

mod marker;
mod page;
mod rows;
mod table;
mod targets;
mod units;

use std::path::Path;

use anyhow::{Context, bail};

const PAGE: &str = "docs/benchmarks.md";

/// Writes the tables, or fails if one is out of date.
pub(crate) fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let results = rows::read(root)?;
    let targets = targets::Targets::read(root, &results)?;
    let path = root.join(PAGE);
    let found = std::fs::read_to_string(&path).context(PAGE)?;
    let page = page::update(&found, &results, &targets).context(PAGE)?;
    if check {
        if let Some(line) = first_difference(&found, &page) {
            bail!("{PAGE}:{line} is not what the results say: run `cargo xtask benchmarks`");
        }
        return Ok(());
    }
    std::fs::write(&path, page).with_context(|| format!("cannot write {PAGE}"))
}

/// Returns the number of the first line that differs.
fn first_difference(found: &str, page: &str) -> Option<usize> {
    let equal = found.lines().zip(page.lines()).take_while(|(a, b)| a == b).count();
    (found != page).then_some(equal + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_a_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
    }

    #[test]
    fn check_fails_after_a_change_of_a_result_or_of_a_table() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let result = |value: &str| {
            let row = r#"[{"name": "up", "value": V, "unit": "s", "baseline": null, "ratio": null,
                "low": 1, "high": 2}]"#;
            write("bench/results/lab.json", &row.replace('V', value));
        };
        result("1");
        write("bench/targets.yaml", "sources: {}\nrows:\n  lab.json: {up: {target: at most 1 s}}");
        write(PAGE, "# Page\n\n<!-- bench/results/lab.json: up -->\n");
        let check = || run(root.path(), true).map_err(|error| error.to_string());
        let stale = |line| {
            let text = "is not what the results say: run `cargo xtask benchmarks`";
            Err(format!("{PAGE}:{line} {text}"))
        };
        assert_eq!(check(), stale(4));
        run(root.path(), false).unwrap();
        assert_eq!(check(), Ok(()));
        result("1.5");
        assert_eq!(check(), stale(6));
        run(root.path(), false).unwrap();
        let text = std::fs::read_to_string(root.path().join(PAGE)).unwrap();
        assert!(text.contains("**missed:** at most 1 s"), "{text}");
        write(PAGE, &text.replace("1.5", "0.5"));
        assert_eq!(check(), stale(6));
    }
}
