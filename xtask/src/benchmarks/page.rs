//! The page: finds markers, replaces the table below each, and looks for rows that it omits.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};

use super::marker::Marker;
use super::rows::{DIRECTORY, Results};
use super::table::table;
use super::targets::{self, Targets};

/// Returns the page with current tables. Errors list all places.
pub(crate) fn update(page: &str, results: &Results, targets: &Targets) -> anyhow::Result<String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut text = String::new();
    let (mut shown, mut hidden) = (BTreeSet::new(), BTreeSet::new());
    let mut problems = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let end = comment_end(&lines, at);
        for line in &lines[at..end] {
            text += line;
            text += "\n";
        }
        let found = marker(&lines[at..end]).and_then(|marker| {
            let Some(marker) = marker else { return Ok(end) };
            let rows = marker.rows(results)?;
            let names = rows.iter().map(|row| (marker.file.clone(), row.name.clone()));
            if !marker.has_table {
                hidden.extend(names);
                return Ok(end);
            }
            shown.extend(names);
            text += &table(&marker, &rows, targets)?;
            table_end(&lines, end)
        });
        let start = at + 1;
        at = found.unwrap_or_else(|error| {
            problems.push(format!("line {start}: {error:#}"));
            end
        });
    }
    problems.extend(omitted(results, targets, &shown, &hidden));
    ensure!(problems.is_empty(), "{} problems:\n  {}", problems.len(), problems.join("\n  "));
    Ok(text)
}

/// Returns the line after a comment that begins in a line, or after the line itself.
fn comment_end(lines: &[&str], at: usize) -> usize {
    if !lines[at].starts_with("<!--") {
        return at + 1;
    }
    let last = lines[at..].iter().position(|line| line.ends_with("-->"));
    last.map_or(at + 1, |last| at + last + 1)
}

fn marker(lines: &[&str]) -> anyhow::Result<Option<Marker>> {
    let text = lines.join("\n");
    let Some(comment) = text.strip_prefix("<!--") else { return Ok(None) };
    let comment = comment.strip_suffix("-->").context("a comment has no `-->` at a line's end")?;
    Marker::parse(comment.trim())
}

/// Returns the line after the table: an empty line or the end of the page.
fn table_end(lines: &[&str], at: usize) -> anyhow::Result<usize> {
    let rest = &lines[at..];
    let count = rest.iter().position(|line| line.is_empty()).unwrap_or(rest.len());
    if let Some(line) = rest[..count].iter().find(|line| !line.starts_with('|')) {
        bail!("a table or an empty line follows a marker, not `{line}`");
    }
    Ok(at + count)
}

/// Lists rows that no comment names, and targets that no table shows.
fn omitted(
    results: &Results,
    targets: &Targets,
    shown: &BTreeSet<(String, String)>,
    hidden: &BTreeSet<(String, String)>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, rows) in results {
        let mut names = Vec::new();
        for row in rows {
            let key = (file.clone(), row.name.clone());
            if shown.contains(&key) {
                continue;
            }
            if targets.of(file, row).is_some() {
                problems.push(format!(
                    "{}: {file}: `{}` is in no table: show it, or remove the entry",
                    targets::FILE,
                    row.name
                ));
            } else if !hidden.contains(&key) {
                names.push(row.name.as_str());
            }
        }
        if !names.is_empty() {
            let names = names.join(", ");
            problems.push(format!(
                "{DIRECTORY}{file}: no table shows these rows: add them to a marker, or \
                 `<!-- not shown: {DIRECTORY}{file}: {names} -->`"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    const PAGE: &str = "# Page\n\n<!-- bench/results/lab.json: up/ -->\n| old |\n|---|\n\nText\n";
    const HIDDEN: &str = "<!-- not shown: bench/results/lab.json:\ndown/ -->\n";

    fn updated(page: &str, targets: &str) -> Result<String, String> {
        let row = |name: &str| {
            format!(
                r#"{{"name": "{name}", "value": 1, "unit": "s", "baseline": null, "ratio": null,
                    "low": 1, "high": 1}}"#
            )
        };
        let rows = ["up/100", "down/100", "down/1000"].map(row).join(",");
        let rows = rows::parse(&format!("[{rows}]")).unwrap();
        let results = Results::from([("lab.json".to_owned(), rows)]);
        let targets = format!("sources: {{}}\nrows:\n  lab.json: {{{targets}}}\n");
        let targets = Targets::parse(&targets, &results).unwrap();
        update(page, &results, &targets).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_is_replaced_up_to_the_empty_line() {
        let page = format!("{HIDDEN}{PAGE}");
        let text = updated(&page, "").unwrap();
        let new = "| row | Kaido |\n|---|---|\n| `up/100` | 1 s |\n";
        assert_eq!(text, page.replace("| old |\n|---|\n", new));
        assert_eq!(updated(&text, "").unwrap(), text);
        let without = page.replace("| old |\n|---|\n", "");
        assert_eq!(updated(&without, "").unwrap(), text);
    }

    #[test]
    fn a_marker_without_rows_has_its_place_and_the_fix() {
        let page = format!("{HIDDEN}{}", PAGE.replace("up/", "up/100, left/"));
        assert_eq!(
            updated(&page, "").unwrap_err(),
            "2 problems:\n  line 5: `left/` matches no row of bench/results/lab.json: correct or \
             remove it\n  bench/results/lab.json: no table shows these rows: add them to a \
             marker, or `<!-- not shown: bench/results/lab.json: up/100 -->`"
        );
    }

    #[test]
    fn rows_without_a_table_are_listed() {
        let error = updated(PAGE, "").unwrap_err();
        assert!(error.contains("bench/results/lab.json: down/100, down/1000 -->"), "{error}");
    }

    #[test]
    fn a_target_is_in_a_table() {
        let error = updated(&format!("{HIDDEN}{PAGE}"), "down/: {target: at most 2 s}");
        let error = error.unwrap_err();
        let first = "bench/targets.yaml: lab.json: `down/100` is in no table";
        assert!(error.starts_with(&format!("2 problems:\n  {first}")), "{error}");
    }

    #[test]
    fn text_below_a_marker_is_not_overwritten() {
        let page = format!("{HIDDEN}{}", PAGE.replace("| old |\n", "Words\n"));
        let error = updated(&page, "").unwrap_err();
        assert!(error.contains("line 5: a table or an empty line follows a marker"), "{error}");
        let open = updated("<!-- bench/results/lab.json: up/\n", "").unwrap_err();
        assert!(open.contains("line 1: a comment has no `-->`"), "{open}");
    }
}
