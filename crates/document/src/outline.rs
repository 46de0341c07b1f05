//! Other tools' YAML and JSON as values with line numbers, for importers.

use super::{Problems, Report, Span, Tree, Value, load};

/// Maximum file size: larger files do not describe labs.
const MAX_MIB: usize = 4;

/// A value with the line of the value or of its key.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Line, from 1.
    pub line: usize,
    /// The value.
    pub value: OutlineValue,
}

/// A YAML value.
#[derive(Debug, Clone)]
pub enum OutlineValue {
    /// A string, a number, or null.
    Word(String),
    /// A list.
    List(Vec<Outline>),
    /// A map in file order, without duplicate keys.
    Map(Vec<(String, Outline)>),
}

/// Parses a text; `file` is only used in messages.
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

    /// The string, if the value is one and is not empty.
    pub fn word(&self) -> Option<&str> {
        match &self.value {
            OutlineValue::Word(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The items of a list; empty for other values.
    pub fn items(&self) -> &[Self] {
        if let OutlineValue::List(items) = &self.value { items } else { &[] }
    }

    /// The entries of a map; empty for other values.
    pub fn entries(&self) -> &[(String, Self)] {
        if let OutlineValue::Map(entries) = &self.value { entries } else { &[] }
    }

    /// True if the value is null.
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
    fn invalid_yaml_is_refused_with_its_location() {
        let said = |text: &str| outline("f.yml", text).unwrap_err().to_string();
        let unclosed = said("a: 1\nb: [\n");
        assert!(unclosed.contains("f.yml:3:1"), "{unclosed}");
        assert!(said("").contains("the file is empty"));
        assert!(said(&"x".repeat(5 << 20)).contains("larger than 4 MiB"));
    }
}
