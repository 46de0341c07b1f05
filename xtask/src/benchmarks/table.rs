//! A table of rows, with a column for each kind of figure that they have.

use anyhow::{Context, ensure};

use super::marker::Marker;
use super::rows::Row;
use super::targets::{self, Targets};
use super::units;

/// Heading of a baseline that comes from a publication.
const PUBLISHED: &str = "published";

/// Formats the table below a marker.
pub(crate) fn table(marker: &Marker, rows: &[&Row], targets: &Targets) -> anyhow::Result<String> {
    let baseline = marker.baseline.as_deref().unwrap_or("baseline");
    let is_published = baseline == PUBLISHED;
    let value = marker.value.as_deref().unwrap_or("Kaido");
    let headings = ["row", value, baseline, "ratio", "target", PUBLISHED];
    let mut lines = vec![headings.map(str::to_owned)];
    for row in rows {
        let entry = targets.of(&marker.file, row).cloned().unwrap_or_default();
        let mut baseline = row.baseline.map(|value| units::single(value, &row.unit));
        let mut published = entry.published;
        if is_published {
            let missing =
                || format!("`{}` needs its published figure in {}", row.name, targets::FILE);
            ensure!(baseline.is_none() || published.is_some(), missing());
            // The publication's own words say more than the baseline's number.
            baseline = published.take();
        } else {
            let help = || format!("`{}` has a baseline: name it by `baseline: NAME`", row.name);
            ensure!(baseline.is_none() || marker.baseline.is_some(), help());
        }
        let target = entry.target.map(|target| targets::verdict(&target, row)).transpose()?;
        lines.push([
            format!("`{}`", row.name),
            units::spread(row.value, row.low, row.high, &row.unit),
            baseline.unwrap_or_default(),
            row.ratio.map(units::ratio).unwrap_or_default(),
            target.unwrap_or_default(),
            published.unwrap_or_default(),
        ]);
    }
    if marker.median {
        let mut line: [String; 6] = Default::default();
        (line[0], line[3]) = ("median of ratios".into(), median_of_ratios(rows)?);
        lines.push(line);
    }
    Ok(format_lines(&lines))
}

fn median_of_ratios(rows: &[&Row]) -> anyhow::Result<String> {
    let ratios: Option<Vec<f64>> = rows.iter().map(|row| row.ratio).collect();
    let mut ratios = ratios.context("a median of ratios needs a ratio in each row")?;
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len() / 2;
    let median = (ratios[middle] + ratios[(ratios.len() - 1) / 2]) / 2.0;
    let [median, low, high] = [median, ratios[0], ratios[ratios.len() - 1]].map(units::ratio);
    Ok(format!("{median} ({low} to {high})"))
}

/// Formats lines, without the columns that are empty below the heading.
fn format_lines(lines: &[[String; 6]]) -> String {
    let is_used = |column: &usize| lines[1..].iter().any(|line| !line[*column].is_empty());
    let columns: Vec<usize> = (0..6).filter(is_used).collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for column in &columns {
            let cell = &line[*column];
            text += "| ";
            text += cell;
            text += if cell.is_empty() { "" } else { " " };
        }
        text += "|\n";
        if index == 0 {
            text += &"|---".repeat(columns.len());
            text += "|\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::{self, Results};
    use super::*;

    const ROWS: &str = r#"[
        {"name": "up/100", "value": 0.26, "unit": "s", "baseline": 13.6, "ratio": 52.4,
         "low": 0.16, "high": 0.45},
        {"name": "up/1000", "value": 2.8, "unit": "s", "baseline": 30, "ratio": 10.8,
         "low": 2.3, "high": 6.8},
        {"name": "down/100", "value": 0.0111, "unit": "s", "baseline": null, "ratio": null,
         "low": 0.005, "high": 0.013}]"#;

    fn shown(options: &str, targets: &str) -> Result<String, String> {
        let results = Results::from([("lab.json".to_owned(), rows::parse(ROWS).unwrap())]);
        let text = format!("sources: {{p: a paper}}\nrows:\n  lab.json: {{{targets}}}\n");
        let targets = Targets::parse(&text, &results).unwrap();
        let marker = Marker::parse(&format!("bench/results/lab.json: {options}")).unwrap().unwrap();
        let rows = marker.rows(&results).unwrap();
        table(&marker, &rows, &targets).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_has_the_columns_that_its_rows_have() {
        let all = "up/100: {target: at most 0.1 s}, down/100: {published: 1 s, source: p}";
        assert_eq!(
            shown("up/100, down/; baseline: the script", all).unwrap(),
            "| row | Kaido | the script | ratio | target | published |\n\
             |---|---|---|---|---|---|\n\
             | `up/100` | 260 ms (160 to 450) | 13.6 s | 52.4 | **missed:** at most 0.1 s | |\n\
             | `down/100` | 11.1 ms (5.0 to 13.0) | | | | 1 s |\n"
        );
        assert_eq!(
            shown("down/100; value: the end", "").unwrap(),
            "| row | the end |\n|---|---|\n| `down/100` | 11.1 ms (5.0 to 13.0) |\n"
        );
    }

    #[test]
    fn a_published_baseline_has_the_publications_words() {
        let text = shown("up/; baseline: published", "up/: {published: about 13 s, source: p}");
        assert!(text.unwrap().contains("| 260 ms (160 to 450) | about 13 s | 52.4 |\n"));
        let missing = shown("up/100; baseline: published", "").unwrap_err();
        assert_eq!(missing, "`up/100` needs its published figure in bench/targets.yaml");
        let unnamed = shown("up/100", "").unwrap_err();
        assert_eq!(unnamed, "`up/100` has a baseline: name it by `baseline: NAME`");
    }

    #[test]
    fn the_median_of_ratios_is_the_last_line() {
        let text = shown("up/; baseline: the script; median of ratios", "").unwrap();
        assert!(text.ends_with("| median of ratios | | | 31.6 (10.8 to 52.4) |\n"), "{text}");
        assert!(shown("*; baseline: the script; median of ratios", "").is_err());
    }
}
