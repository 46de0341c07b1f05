//! Names of tests: a condition and an outcome in the field's words.

use super::words::{NAMES_WORDS, WORDS};

/// The openers of clauses without a noun.
const OPENERS: [&str; 5] = ["what", "who", "whose", "whether", "of"];

/// The prefixes that select tests.
const PREFIXES: [&str; 2] = ["root_", "regression_"];

/// Lines between a test's attribute and its name: further attributes.
const ATTRIBUTES: usize = 8;

/// Returns the line number and name of each test in Rust source.
pub(super) fn of_tests(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    };
    let name = |at: usize| {
        let rest = lines[at].trim_start();
        let rest = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ")?;
        rest.split('(').next().map(|name| (at + 1, name))
    };
    let tests = (0..lines.len()).filter(|at| is_test(lines[*at]));
    tests.filter_map(|at| (at + 1..lines.len()).take(ATTRIBUTES).find_map(name)).collect()
}

/// Returns the advice for a test's name, if it needs any.
pub(super) fn advice(name: &str) -> Option<String> {
    let mut bare = name;
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| bare.strip_prefix(prefix)) {
        bare = rest;
    }
    let first = bare.split('_').next().unwrap_or_default();
    if OPENERS.contains(&first) {
        return Some(format!("`{name}` opens with `{first}`: name a condition and an outcome"));
    }
    let spaced = bare.replace('_', " ");
    let all = WORDS.iter().chain(&NAMES_WORDS);
    let (word, instead) = all.into_iter().find(|(word, _)| super::has(&spaced, word))?;
    Some(format!("`{name}`: not `{word}`, but {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_below_their_attributes() {
        let text = "#[test]\n#[ignore]\nfn one() {}\n\n    #[tokio::test(x)]\n    async fn two() {}\n\
                    fn told() {}\n";
        assert_eq!(of_tests(text), [(3, "one"), (6, "two")]);
    }

    #[test]
    fn words_count_as_a_whole_and_openers_after_prefixes() {
        assert!(advice("root_regression_what_is_odd").is_some_and(|said| said.contains("what")));
        assert!(advice("an_error_is_told_once").is_some_and(|said| said.contains("reported")));
        assert!(advice("a_free_port_is_no_error").is_some_and(|said| said.contains("is not a")));
        for good in ["an_odd_header_is_refused", "root_an_untold_story", "a_part_of_it"] {
            assert_eq!(advice(good), None);
        }
    }
}
