//! `bench/targets.yaml`: targets and published figures of rows, with the source of each.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use super::rows::{Pattern, Results, Row};
use super::units;

pub(crate) const FILE: &str = "bench/targets.yaml";

/// The file's form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    /// Publications by short name.
    sources: BTreeMap<String, String>,
    /// Entries by JSON file and pattern of rows.
    rows: BTreeMap<String, BTreeMap<String, Entry>>,
}

/// Target and published figure of rows.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// `at least 5 Gbit/s`, `at most 50 ms`, `600 ± 0.1 ms`, `60 ms`, or a bound after `ratio`.
    pub(crate) target: Option<String>,
    pub(crate) published: Option<String>,
    /// Short name of a publication, and after a comma the place in it.
    source: Option<String>,
}

/// Entries by file, each with the rows that it applies to.
#[derive(Debug, Default)]
pub(crate) struct Targets(BTreeMap<String, Vec<(Pattern, Entry)>>);

impl Targets {
    pub(crate) fn read(root: &Path, results: &Results) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
        Self::parse(&text, results).context(FILE)
    }

    pub(crate) fn parse(text: &str, results: &Results) -> anyhow::Result<Self> {
        let text: Text = serde_saphyr::from_str(text)?;
        let mut targets = Self::default();
        for (file, entries) in text.rows {
            let rows = results.get(&file).with_context(|| format!("{file} does not exist"))?;
            let mut parsed: Vec<(Pattern, Entry)> = Vec::new();
            for (pattern, entry) in entries {
                let place = format!("{file}: {pattern}");
                check_source(&entry, &text.sources).context(place.clone())?;
                let pattern = Pattern::parse(&pattern).context(place.clone())?;
                let mut found = rows.iter().filter(|row| pattern.matches(&row.name)).peekable();
                ensure!(found.peek().is_some(), "{place}: no row has this name");
                for row in found {
                    let twice = parsed.iter().find(|(other, _)| other.matches(&row.name));
                    if let Some((other, _)) = twice {
                        bail!("{place}: `{}` has the entry `{other}` as well", row.name);
                    }
                    if let Some(target) = &entry.target {
                        is_met(target, row).context(place.clone())?;
                    }
                }
                parsed.push((pattern, entry));
            }
            targets.0.insert(file, parsed);
        }
        Ok(targets)
    }

    pub(crate) fn of(&self, file: &str, row: &Row) -> Option<&Entry> {
        let entries = self.0.get(file)?;
        entries.iter().find(|(pattern, _)| pattern.matches(&row.name)).map(|(_, entry)| entry)
    }
}

fn check_source(entry: &Entry, sources: &BTreeMap<String, String>) -> anyhow::Result<()> {
    if entry.published.is_none() {
        return Ok(());
    }
    let source = entry.source.as_deref().context("a published figure needs a `source`")?;
    let name = source.split(',').next().unwrap_or_default();
    ensure!(sources.contains_key(name), "`{name}` is not in `sources`");
    Ok(())
}

/// Formats a target, marked if the row misses it.
pub(crate) fn verdict(target: &str, row: &Row) -> anyhow::Result<String> {
    Ok(if is_met(target, row)? { target.to_owned() } else { format!("**missed:** {target}") })
}

/// Compares a row's median, or its ratio, with a target.
fn is_met(target: &str, row: &Row) -> anyhow::Result<bool> {
    if let Some(bound) = target.strip_prefix("ratio ") {
        let ratio = row.ratio.with_context(|| format!("`{}` has no ratio", row.name))?;
        return is_within(bound, ratio, "1");
    }
    is_within(target, row.value, &row.unit)
}

fn is_within(bound: &str, value: f64, unit: &str) -> anyhow::Result<bool> {
    if let Some(least) = bound.strip_prefix("at least ") {
        return Ok(value >= units::convert(least, unit)?);
    }
    if let Some(most) = bound.strip_prefix("at most ") {
        return Ok(value <= units::convert(most, unit)?);
    }
    if let Some((middle, tolerance)) = bound.split_once(" ± ") {
        let named = tolerance.split_once(' ').map_or("1", |(_, unit)| unit);
        let middle = units::convert(&format!("{middle} {named}"), unit)?;
        return Ok((value - middle).abs() <= units::convert(tolerance, unit)?);
    }
    let help = "a target is `at least`, `at most`, `VALUE ± TOLERANCE UNIT` or `VALUE UNIT`";
    // A value without a tolerance is shown and cannot be missed.
    units::convert(bound, unit).with_context(|| format!("`{bound}`: {help}")).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    fn results() -> Results {
        let rows = r#"[
            {"name": "tcp/1", "value": 13873, "unit": "Mbit/s", "baseline": 700, "ratio": 19.8,
             "low": 12174, "high": 15633},
            {"name": "delay/600ms", "value": 600.08, "unit": "ms", "baseline": null,
             "ratio": null, "low": 600.04, "high": 600.1}]"#;
        Results::from([("emulator.json".to_owned(), rows::parse(rows).unwrap())])
    }

    fn parse(entries: &str) -> Result<Targets, String> {
        let text = format!("sources: {{gine: a thesis}}\nrows:\n  emulator.json: {{{entries}}}\n");
        Targets::parse(&text, &results()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn targets_apply_to_medians_or_ratios() {
        let results = results();
        let [tcp, delay] = &results["emulator.json"][..] else { panic!() };
        let met = |target: &str, row: &Row| verdict(target, row).unwrap() == target;
        assert!(met("at least 5 Gbit/s", tcp) && !met("at most 5 Gbit/s", tcp));
        assert!(met("ratio at least 19", tcp) && !met("ratio at least 20", tcp));
        assert!(met("600 ± 0.1 ms", delay) && !met("600 ± 0.01 ms", delay));
        assert!(met("0.6 ± 0.001 s", delay) && met("600 ms", delay));
        let missed = verdict("at least 20 Gbit/s", tcp).unwrap();
        assert_eq!(missed, "**missed:** at least 20 Gbit/s");
        for wrong in ["ratio at least 2", "over 600 ms", "at most 5 Gbit/s"] {
            assert!(verdict(wrong, delay).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_row_has_one_entry() {
        let targets = parse("tcp/: {target: at least 5 Gbit/s}").unwrap();
        let results = results();
        let [tcp, delay] = &results["emulator.json"][..] else { panic!() };
        assert!(targets.of("emulator.json", tcp).unwrap().target.is_some());
        assert!(targets.of("emulator.json", delay).is_none());
        let twice = parse("tcp/: {target: at least 5 Gbit/s}, tcp/1: {}").unwrap_err();
        assert_eq!(twice, "emulator.json: tcp/1: `tcp/1` has the entry `tcp/` as well");
    }

    #[test]
    fn published_figures_have_sources_and_entries_have_rows() {
        assert!(parse("tcp/1: {published: 0.7, source: 'gine, table 1'}").is_ok());
        let unsourced = parse("tcp/1: {published: '0.7'}").unwrap_err();
        assert_eq!(unsourced, "emulator.json: tcp/1: a published figure needs a `source`");
        let unknown = parse("tcp/1: {published: '0.7', source: rumour}").unwrap_err();
        assert_eq!(unknown, "emulator.json: tcp/1: `rumour` is not in `sources`");
        let no_row = parse("tcp/2: {target: at least 5 Gbit/s}").unwrap_err();
        assert_eq!(no_row, "emulator.json: tcp/2: no row has this name");
        assert!(parse("tcp/1: {goal: 5}").is_err());
    }
}
