//! Comments of the page: which rows a table shows, and which rows no table shows.
//!
//! ```text
//! <!-- bench/results/lab.json: up/100, down/; baseline: the script -->
//! <!-- bench/results/function.json: End.AN.NF-vs-End/, !*-ipv4; value: End.AN.NF; baseline: End;
//! median of ratios -->
//! <!-- not shown: bench/results/dataplane.json: raw/*-flows -->
//! ```

use anyhow::{Context, bail, ensure};

use super::rows::{DIRECTORY, Pattern, Results, Row};

const HIDDEN: &str = "not shown:";

/// A comment that names rows.
#[derive(Debug)]
pub(crate) struct Marker {
    /// True if a table follows, false if the rows are not shown.
    pub(crate) has_table: bool,
    /// Name of the JSON file.
    pub(crate) file: String,
    patterns: Vec<Pattern>,
    /// Rows to leave out.
    except: Vec<Pattern>,
    /// Heading of the medians' column.
    pub(crate) value: Option<String>,
    /// Heading of the baseline's column. `published` is a baseline with a source.
    pub(crate) baseline: Option<String>,
    /// True if a last line shows the median and the range of the ratios.
    pub(crate) median: bool,
}

impl Marker {
    /// Parses a comment without its delimiters. Returns nothing for one that names no rows.
    pub(crate) fn parse(comment: &str) -> anyhow::Result<Option<Self>> {
        let comment = comment.split_whitespace().collect::<Vec<_>>().join(" ");
        let hidden = comment.strip_prefix(HIDDEN).map(str::trim);
        let Some(rest) = hidden.unwrap_or(&comment).strip_prefix(DIRECTORY) else {
            ensure!(hidden.is_none(), "`{HIDDEN}` precedes a file, `{DIRECTORY}….json: NAMES`");
            return Ok(None);
        };
        let (file, rest) = rest.split_once(": ").context("`: ` separates the file and the rows")?;
        let mut parts = rest.split(';').map(str::trim);
        let mut marker = Self {
            has_table: hidden.is_none(),
            file: file.to_owned(),
            patterns: Vec::new(),
            except: Vec::new(),
            value: None,
            baseline: None,
            median: false,
        };
        for name in parts.next().unwrap_or_default().split(',').map(str::trim) {
            match name.strip_prefix('!') {
                Some(name) => marker.except.push(Pattern::parse(name)?),
                None => marker.patterns.push(Pattern::parse(name)?),
            }
        }
        for part in parts {
            match part.split_once(": ") {
                Some(("value", heading)) => marker.value = Some(heading.to_owned()),
                Some(("baseline", heading)) => marker.baseline = Some(heading.to_owned()),
                None if part == "median of ratios" => marker.median = true,
                _ => bail!(
                    "unknown option `{part}`: use `value: NAME`, `baseline: NAME` or \
                     `median of ratios`"
                ),
            }
            ensure!(marker.has_table, "rows that are not shown have no option: remove `{part}`");
        }
        Ok(Some(marker))
    }

    /// Returns the rows in the marker's order, then the file's. Each pattern must match a row.
    pub(crate) fn rows<'r>(&self, results: &'r Results) -> anyhow::Result<Vec<&'r Row>> {
        let file = format!("{DIRECTORY}{}", self.file);
        let all = results.get(&self.file).with_context(|| format!("{file} does not exist"))?;
        for pattern in self.patterns.iter().chain(&self.except) {
            let is_used = all.iter().any(|row| pattern.matches(&row.name));
            ensure!(is_used, "`{pattern}` matches no row of {file}: correct or remove it");
        }
        let mut rows: Vec<&Row> = Vec::new();
        for pattern in &self.patterns {
            let found = all.iter().filter(|row| {
                pattern.matches(&row.name)
                    && !self.except.iter().any(|except| except.matches(&row.name))
                    && !rows.iter().any(|known| known.name == row.name)
            });
            let found: Vec<&Row> = found.collect();
            rows.extend(found);
        }
        ensure!(!rows.is_empty(), "the marker leaves no row of {file}");
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    fn results() -> Results {
        let row = |name: &str| {
            format!(
                r#"{{"name": "{name}", "value": 1, "unit": "s", "baseline": null, "ratio": null,
                    "low": 1, "high": 1}}"#
            )
        };
        let rows = ["up/100", "up/1000", "down/100"].map(row).join(",");
        Results::from([("lab.json".to_owned(), rows::parse(&format!("[{rows}]")).unwrap())])
    }

    fn names(comment: &str) -> Result<Vec<String>, String> {
        let marker = Marker::parse(comment).map_err(|error| error.to_string())?.unwrap();
        let results = results();
        let rows = marker.rows(&results).map_err(|error| error.to_string())?;
        Ok(rows.iter().map(|row| row.name.clone()).collect())
    }

    #[test]
    fn a_marker_lists_rows_in_its_order() {
        let marked = names("bench/results/lab.json: down/,\nup/100, up/").unwrap();
        assert_eq!(marked, ["down/100", "up/100", "up/1000"]);
        let marked = names("bench/results/lab.json: *, !*/1000").unwrap();
        assert_eq!(marked, ["up/100", "down/100"]);
    }

    #[test]
    fn options_follow_the_rows() {
        let text = "bench/results/lab.json: up/; value: up; baseline: the script; median of ratios";
        let marker = Marker::parse(text).unwrap().unwrap();
        assert_eq!(marker.value.as_deref(), Some("up"));
        assert_eq!(marker.baseline.as_deref(), Some("the script"));
        assert!(marker.median && marker.has_table);
        let hidden = Marker::parse("not shown: bench/results/lab.json: up/").unwrap().unwrap();
        assert!(!hidden.has_table);
        assert!(Marker::parse("not shown: bench/results/lab.json: up/; value: up").is_err());
        let wrong = Marker::parse("bench/results/lab.json: up/; sorted").unwrap_err().to_string();
        assert!(wrong.starts_with("unknown option `sorted`"), "{wrong}");
    }

    #[test]
    fn wrong_markers_are_refused_with_the_fix() {
        let no_row = names("bench/results/lab.json: left/").unwrap_err();
        assert_eq!(
            no_row,
            "`left/` matches no row of bench/results/lab.json: correct or remove it"
        );
        let unused = names("bench/results/lab.json: up/, !left").unwrap_err();
        assert!(unused.starts_with("`left` matches no row"), "{unused}");
        let empty = names("bench/results/lab.json: up/, !up/").unwrap_err();
        assert_eq!(empty, "the marker leaves no row of bench/results/lab.json");
        let no_file = names("bench/results/lap.json: up/").unwrap_err();
        assert_eq!(no_file, "bench/results/lap.json does not exist");
        assert!(names("not shown: up/").unwrap_err().contains("precedes a file"));
        assert!(names("bench/results/lab.json").unwrap_err().contains("separates"));
        assert!(names("bench/results/lab.json: up/,").unwrap_err().contains("remove the comma"));
        assert!(Marker::parse("a note").unwrap().is_none());
    }
}
