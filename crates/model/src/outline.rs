//! YAML and JSON of others as values that know their lines: for importers.

use crate::document::{Report, Span, Tree, Value, load};
use crate::topology::Problems;

/// A larger file describes no lab.
const MAX_MIB: usize = 4;

/// A value and the line where it, or its key, stands.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub value: OutlineValue,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum OutlineValue {
    /// A text, a number, or nothing.
    Word(String),
    /// A list.
    List(Vec<Outline>),
    /// A map in the file's order, each key once.
    Map(Vec<(String, Outline)>),
}

/// Reads a text; `file` is only for the messages.
pub fn outline(file: &str, text: &str) -> Result<Outline, Problems> {
    let mut report = Report::new(text);
    let start = Span { end: 1, line: 1, ..Span::default() };
    if text.len() > MAX_MIB << 20 {
        let message = format!("the file is larger than {MAX_MIB} MiB");
        report.add(start, message, Some("import a smaller lab".into()));
        return Err(report.finish(file));
    }
    let (tree, faults) = load(text);
    for fault in faults {
        report.add(fault.span, fault.message, fault.help);
    }
    match tree {
        Some(tree) if report.is_empty() => Ok(tree.into()),
        Some(_) => Err(report.finish(file)),
        None => {
            if report.is_empty() {
                report.add(start, "the file is empty", Some("name a file with a lab in it".into()));
            }
            Err(report.finish(file))
        }
    }
}

impl From<Tree> for Outline {
    fn from(tree: Tree) -> Self {
        let value = match tree.value {
            Value::Scalar { text, .. } => OutlineValue::Word(text),
            Value::List(items) => OutlineValue::List(items.into_iter().map(Self::from).collect()),
            Value::Map(entries) => {
                let entries = entries.into_iter().map(|entry| (entry.key, entry.value.into()));
                OutlineValue::Map(entries.collect())
            }
        };
        Self { line: tree.span.line as usize, value }
    }
}

impl Outline {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The text, if it is one and not empty.
    pub fn word(&self) -> Option<&str> {
        match &self.value {
            OutlineValue::Word(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The list's items; none of something else.
    pub fn items(&self) -> &[Self] {
        if let OutlineValue::List(items) = &self.value { items } else { &[] }
    }

    /// The map's entries; none of something else.
    pub fn entries(&self) -> &[(String, Self)] {
        if let OutlineValue::Map(entries) = &self.value { entries } else { &[] }
    }

    /// Whether nothing is there.
    pub fn is_nothing(&self) -> bool {
        matches!(&self.value, OutlineValue::Word(text) if matches!(text.as_str(), "" | "~" | "null"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_know_their_lines() {
        let yaml = outline("a", "name: x\nlist:\n  - one\n  - {two: 2}\n").unwrap();
        let list = yaml.get("list").unwrap();
        assert_eq!((list.line, list.items().len()), (2, 2));
        assert_eq!(list.items()[1].get("two").unwrap().word(), Some("2"));
        let json = outline("b", "{\n\"x\":[1,\n{\"y\":null}]}").unwrap();
        let y = json.get("x").unwrap().items()[1].get("y").unwrap();
        assert!(y.is_nothing() && y.line == 3, "{y:?}");
    }

    #[test]
    fn what_is_no_tree_is_refused_with_its_line() {
        let said = |text: &str| outline("f.yml", text).unwrap_err().to_string();
        assert!(said("a: 1\nb: [\n").contains("f.yml:"));
        assert!(said("").contains("the file is empty"));
        assert!(said(&"x".repeat(5 << 20)).contains("larger than 4 MiB"));
    }
}
