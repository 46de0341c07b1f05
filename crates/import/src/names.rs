//! Unique names that are valid in Kaido.

use std::collections::{HashMap, HashSet};

use model::{is_daemon_name, is_lab_name, is_node_name};

/// Maximum length of a name: an interface's name has 15 bytes, of which parallel links use 4.
const MAX_LEN: usize = 11;

/// Length of the part of a name that remains before a suffix of up to five digits.
const STEM: usize = MAX_LEN - 5;

/// The set of names in use.
#[derive(Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
    /// Last numeric suffix tried for a stem of [`STEM`] bytes. Names that truncation can make equal
    /// share it, so that the time is linear.
    last: HashMap<String, usize>,
}

impl Names {
    /// Allocates `wanted` if it is valid and free, otherwise a similar name.
    pub(crate) fn give(&mut self, wanted: &str) -> String {
        if self.is_free(wanted) {
            self.taken.insert(wanted.to_owned());
            return wanted.to_owned();
        }
        let near = near(wanted);
        let mut name = near.clone();
        // Terminates: there are more numbers than names.
        while !self.is_free(&name) {
            let stem = near[..near.len().min(STEM)].to_owned();
            let last = self.last.entry(stem).or_insert(1);
            *last += 1;
            name = fit(&near, &last.to_string());
        }
        self.taken.insert(name.clone());
        name
    }

    /// True if a node may have exactly this name.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        is_node_name(name) && !is_daemon_name(name) && !self.taken.contains(name)
    }
}

/// A valid name similar to `text`: `spine-1` -> `spine1`, `data.center-switch` -> `data_center`.
fn near(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    // A suffix of `_` and digits is reserved for parallel links.
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    let stem = stem.trim_end_matches('_');
    let stem = match stem.chars().next() {
        Some(c) if c.is_ascii_alphabetic() => stem.to_owned(),
        _ => format!("n{stem}"),
    };
    fit(&stem, &digits[digits.len().saturating_sub(6)..])
}

/// Truncates `stem` so that the suffix `end` fits, and avoids a result that ends in `_` and digits.
fn fit(stem: &str, end: &str) -> String {
    let room = MAX_LEN.saturating_sub(end.len());
    let stem = &stem[..stem.len().min(room)];
    let name = format!("{}{end}", stem.trim_end_matches('_'));
    let tail = name.rsplit_once('_').map_or("x", |(_, tail)| tail);
    let is_parallel = tail.bytes().all(|b| b.is_ascii_digit());
    if is_parallel { name.replace('_', "") } else { name }
}

/// A valid lab name similar to `wanted`.
pub(crate) fn lab_name(wanted: &str) -> String {
    if is_lab_name(wanted) {
        return wanted.to_owned();
    }
    let mut name = String::new();
    for c in wanted.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, if name.is_empty() { "lab" } else { "lab-" });
    }
    name.truncate(31);
    name.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_or_near() {
        let mut names = Names::default();
        let given: Vec<String> = [
            "r1",
            "r1",
            "spine-1",
            "spine_1",
            "1st",
            "",
            "data.center-switch",
            "data.center-host",
            "lo",
            "é",
            "leaf-01-eu-west-1234567",
            "r-2",
            "emulator",
        ]
        .iter()
        .map(|name| names.give(name))
        .collect();
        let wanted = [
            "r1",
            "r12",
            "spine1",
            "spine12",
            "n1st",
            "n",
            "data_center",
            "data_cente2",
            "lo2",
            "n2",
            "leaf234567",
            "r2",
            "emulator2",
        ];
        assert_eq!(given, wanted);
        assert!(given.iter().all(|name| is_node_name(name)), "{given:?}");
    }

    #[test]
    fn a_shortened_name_does_not_end_in_a_link_number() {
        let mut names = Names::default();
        for wanted in ["B*02:00:00:00:00:07", "B*02:00:00:00:00:07", "a-1-2-3-4-5-6-7-8-9-x", "_0"]
        {
            let name = names.give(wanted);
            assert!(is_node_name(&name), "{wanted}: {name}");
        }
    }

    #[test]
    fn many_of_one_name_all_differ() {
        let mut names = Names::default();
        let all: HashSet<String> = (0..2000).map(|_| names.give("a very long name")).collect();
        assert_eq!(all.len(), 2000);
        assert!(all.iter().all(|name| is_node_name(name)));
    }

    /// Pairs of names whose stems differ only where suffixes stand.
    #[test]
    fn many_of_nearly_the_same_name_all_differ() {
        let mut names = Names::default();
        let names: HashSet<String> = (0..40_000)
            .flat_map(|n| [format!("{:a<8}{:03x}", "", n / 2), format!("{:a<8}{:03x}.", "", n / 2)])
            .map(|name| names.give(&name))
            .collect();
        assert_eq!(names.len(), 80_000);
        assert!(names.iter().all(|name| is_node_name(name)));
    }

    #[test]
    fn labs() {
        for (wanted, name) in
            [("srl01", "srl01"), ("My Lab_2", "my-lab-2"), ("3-tier", "lab-3-tier"), ("", "lab")]
        {
            assert_eq!(lab_name(wanted), name);
            assert!(is_lab_name(name));
        }
        assert!(is_lab_name(&lab_name(&"x-".repeat(40))));
    }
}
