//! Plain English in comments, messages, pages and names of tests: how a comment opens, and words
//! that have a better one.

mod names;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use words::WORDS;

/// A doc comment opens with a noun phrase or a verb in the third person.
const BAD_OPENERS: [&str; 15] = [
    "What", "Whether", "How", "Who", "Whose", "Whom", "Where", "Which", "Those", "Of", "By", "As",
    "That", "When", "Why",
];

/// The share of "what" in comments: well-kept crates have three in a thousand lines.
const WHATS_IN_A_THOUSAND: usize = 12;

/// A line with something to rewrite.
struct Finding {
    place: String,
    advice: String,
}

pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut findings = Vec::new();
    let (mut lines, mut whats) = (0, Vec::new());
    for file in tracked(root)? {
        let text = std::fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        let tests = if file.ends_with(".rs") { names::of_tests(&text) } else { Vec::new() };
        for (number, advice) in
            tests.iter().filter_map(|(number, name)| Some((number, names::advice(name)?)))
        {
            findings.push(Finding { place: format!("{file}:{number}"), advice });
        }
        // The comments of messages and methods are their documentation.
        let marker = if file.ends_with(".proto") { "//" } else { "///" };
        let mut in_doc = false;
        for (number, line) in text.lines().enumerate() {
            let place = format!("{file}:{}", number + 1);
            let doc = line.trim_start().strip_prefix(marker).map(str::trim_start);
            if let Some(opener) = doc.filter(|_| !in_doc).and_then(bad_opener) {
                let advice = format!("opens with {opener}: use a noun phrase or a verb");
                findings.push(Finding { place: place.clone(), advice });
            }
            in_doc = doc.is_some();
            let Some(prose) = prose(&file, line) else { continue };
            let prose = prose.to_lowercase();
            for (word, instead) in WORDS.iter().filter(|(word, _)| has(&prose, word)) {
                let advice = format!("`{word}`: {instead}");
                findings.push(Finding { place: place.clone(), advice });
            }
            if is_comment(&file, line) {
                lines += 1;
                if has(&prose, "what") {
                    whats.push(place);
                }
            }
        }
    }
    ensure!(lines > 0, "no comment is found");
    if whats.len() * 1000 > lines * WHATS_IN_A_THOUSAND {
        let advice =
            format!("{} of {lines} comment lines say \"what\": name the thing", whats.len());
        findings.push(Finding { place: whats.join("\n  "), advice });
    }
    if findings.is_empty() {
        println!("{lines} comment lines, {} with \"what\"", whats.len());
        return Ok(());
    }
    let all: Vec<String> =
        findings.iter().map(|one| format!("{}: {}", one.place, one.advice)).collect();
    bail!("{} places to rewrite:\n  {}", all.len(), all.join("\n  "))
}

/// The sources and pages that git tracks. Generated pages take their text from sources.
fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--", "*.rs", "*.c", "*.h", "*.proto", "*.md", "*.sh"])
        .current_dir(root)
        .output()
        .context("git does not start")?;
    ensure!(output.status.success(), "git ls-files fails");
    let files = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    // It names the words that it looks for.
    Ok(files
        .lines()
        .filter(|file| !file.starts_with("xtask/src/prose/"))
        .map(str::to_owned)
        .collect())
}

fn bad_opener(doc: &str) -> Option<&str> {
    let first = doc.split(' ').next()?.trim_end_matches([',', '.', ':']);
    BAD_OPENERS.contains(&first).then_some(first)
}

fn is_comment(file: &str, line: &str) -> bool {
    let line = line.trim_start();
    let starts: &[&str] = match file.rsplit('.').next() {
        Some("rs" | "proto") => &["//"],
        Some("c" | "h") => &["/*", "*", "//"],
        Some("sh") => &["# "],
        _ => &[],
    };
    starts.iter().any(|start| line.starts_with(start))
}

/// True for files of tests. `commands/test/` is a command.
fn is_test(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    file.contains("/tests/")
        || file.contains("testkit")
        || matches!(name, "tests.rs" | "testing.rs")
        || name.ends_with("_tests.rs")
}

/// The prose of a line: a comment, the text of a page, or strings of code that ships.
fn prose<'l>(file: &str, line: &'l str) -> Option<&'l str> {
    if file.ends_with(".md") || is_comment(file, line) {
        return Some(line);
    }
    let ships = file.ends_with(".rs") && file.contains("/src/") && !is_test(file);
    let begin = line.find('"').filter(|_| ships)?;
    let end = line.rfind('"').filter(|end| *end > begin).unwrap_or(line.len());
    Some(&line[begin..end])
}

/// Returns true if `text` has `word` between word boundaries.
fn has(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        // "There is no route" is English, "it is no longer" too; "it is no route" is not.
        let is_allowed = before.ends_with("there ") || after.starts_with(" longer");
        is_whole && !is_allowed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_and_openers_are_first() {
        assert!(has("it is no use", "is no") && !has("it is now", "is no"));
        assert!(!has("no use", "is no") && !has("it is no longer", "is no"));
        assert_eq!(bad_opener("What it is"), Some("What"));
        assert_eq!(bad_opener("Whatever"), None);
        assert_eq!(prose("crates/a/src/b.rs", "f(\"at work\");"), Some("\"at work"));
        assert_eq!(prose("crates/a/src/b.rs", "at_work();"), None);
        assert_eq!(prose("crates/a/tests/b.rs", "f(\"at work\");"), None);
    }
}
