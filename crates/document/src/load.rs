//! YAML text -> tree.
//!
//! Anchors, aliases and merge keys are resolved here, within limits, so that a small text cannot
//! expand to a huge tree.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::problems::MAX_FOUND;
use super::tree::{Entry, Span, Tree, Value};

/// An error that prevents the construction of a tree.
#[derive(Debug)]
pub struct Fault {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Fault {
    fn new(span: Span, message: impl Into<String>, help: &str) -> Self {
        Self { span, message: message.into(), help: Some(help.into()) }
    }
}

/// Maximum length of a key in bytes.
const MAX_KEY: usize = 1024;
/// Maximum nesting depth of values; the grammar needs seven levels.
const MAX_DEPTH: usize = 32;
/// Maximum memory of all copies for anchors and aliases, in bytes: some 100,000 values.
const MAX_COPIED_BYTES: usize = 16 << 20;

/// A list or map that is not complete yet.
struct Open {
    anchor: usize,
    span: Span,
    is_map: bool,
    /// Number of items and entries before its own.
    items: usize,
    entries: usize,
    /// In a map: the key of the next value.
    key: Option<(String, Span)>,
}

#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    /// Items and entries of all incomplete lists and maps, so that each is allocated once, with its
    /// final size.
    items: Vec<Tree>,
    entries: Vec<Entry>,
    anchors: HashMap<usize, Tree>,
    copied: usize,
    root: Option<Tree>,
    faults: Vec<Fault>,
}

/// Loads the tree of `text`, as far as it can be parsed, with all errors.
pub fn load(text: &str) -> (Option<Tree>, Vec<Fault>) {
    let mut loader = Loader::default();
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok((event, span)) => (event, Span::from(span)),
            Err(error) => {
                let line = text.lines().nth(error.marker().line().saturating_sub(1));
                let help = match line.is_some_and(|line| line.trim_end().ends_with("::")) {
                    true => "write an address that ends in `::` in quotes",
                    false => "check the indentation, the brackets and the quotes up to here",
                };
                let message = format!("this is not YAML: {}", error.info());
                loader.faults.push(Fault::new(Span::one(error.marker()), message, help));
                return (None, loader.faults);
            }
        };
        match event {
            Event::DocumentStart(_) if documents > 0 => {
                loader.faults.push(Fault::new(
                    span,
                    "a second document begins here",
                    "write it into a file of its own",
                ));
                break;
            }
            Event::DocumentStart(_) => documents += 1,
            Event::StreamEnd => break,
            event => {
                if let Err(fault) = loader.event(event, span) {
                    loader.faults.push(fault);
                    return (None, loader.faults);
                }
            }
        }
    }
    (loader.root, loader.faults)
}

impl Loader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                self.done(span, anchor, Value::Scalar { text: text.into_owned(), plain })?;
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, span, false)?,
            Event::MappingStart(anchor, _) => self.begin(anchor, span, true)?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let value = if open.is_map {
                        Value::Map(self.map(open.entries)?)
                    } else {
                        Value::List(self.items.drain(open.items..).collect())
                    };
                    self.done(open.span, open.anchor, value)?;
                }
            }
            Event::Alias(id) => self.alias(id, span)?,
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, anchor: usize, span: Span, is_map: bool) -> Result<(), Fault> {
        if self.open.len() == MAX_DEPTH {
            return Err(Fault::new(span, "values are nested too deeply", "write it flatter"));
        }
        let (items, entries) = (self.items.len(), self.entries.len());
        self.open.push(Open { anchor, span, is_map, items, entries, key: None });
        Ok(())
    }

    /// The map that starts at the entry `first`.
    fn map(&mut self, first: usize) -> Result<Vec<Entry>, Fault> {
        let mut entries: Vec<Entry> = self.entries.drain(first..).collect();
        if let Some(twice) = twice(&entries) {
            let mut known = HashSet::new();
            let is_first: Vec<bool> = entries.iter().map(|e| known.insert(e.key.clone())).collect();
            let mut is_first = is_first.into_iter();
            entries.retain(|_| is_first.next().unwrap_or(true));
            // A report records no more.
            let room = MAX_FOUND.saturating_sub(self.faults.len());
            for (key, span) in twice.into_iter().take(room) {
                let message = format!("`{key}` is given twice");
                self.faults.push(Fault::new(span, message, "rename or remove one of the two"));
            }
        }
        merge(&mut entries)?;
        Ok(entries)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<(), Fault> {
        let Some(tree) = self.anchors.get(&id).cloned() else {
            let help = "use the alias after the end of its anchor's value";
            return Err(Fault::new(span, "this alias is inside its own anchor", help));
        };
        self.count_copy(&tree)?;
        self.done(tree.span, 0, tree.value)
    }

    /// Counts a copy of a value, for an anchor or an alias.
    fn count_copy(&mut self, tree: &Tree) -> Result<(), Fault> {
        self.copied += tree.bytes();
        if self.copied > MAX_COPIED_BYTES {
            let message =
                format!("anchors and aliases add more than {} MiB", MAX_COPIED_BYTES >> 20);
            return Err(Fault::new(tree.span, message, "use fewer anchors and aliases"));
        }
        Ok(())
    }

    /// Adds a complete value to its parent.
    fn done(&mut self, span: Span, anchor: usize, value: Value) -> Result<(), Fault> {
        let mut tree = Tree { span, value, pruned: false };
        if anchor > 0 {
            self.count_copy(&tree)?;
            self.anchors.insert(anchor, tree.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(tree);
            return Ok(());
        };
        if !open.is_map {
            self.items.push(tree);
            return Ok(());
        }
        match open.key.take() {
            None => match tree.value {
                // It is a part of the path of each error below it, and of other texts.
                Value::Scalar { text, .. } if text.len() > MAX_KEY => {
                    let message = format!("a key has {} bytes", text.len());
                    return Err(Fault::new(span, message, "use at most 1024"));
                }
                Value::Scalar { text, .. } => open.key = Some((text, tree.span)),
                _ => return Err(Fault::new(span, "a key must be a word", "write `key: value`")),
            },
            Some((key, span)) => {
                if !matches!(tree.value, Value::Scalar { .. }) {
                    tree.span = span;
                }
                self.entries.push(Entry { key, span, value: tree });
            }
        }
        Ok(())
    }
}

/// Duplicate keys with their locations; none in nearly every map.
fn twice(entries: &[Entry]) -> Option<Vec<(String, Span)>> {
    // Most maps are small enough for comparisons to be cheaper than hashing.
    if entries.len() <= 8 {
        let is_new =
            |(at, entry): (usize, &Entry)| entries[..at].iter().all(|e| e.key != entry.key);
        if entries.iter().enumerate().all(is_new) {
            return None;
        }
    }
    let mut known = HashSet::with_capacity(entries.len());
    let again = entries.iter().filter(|entry| !known.insert(entry.key.as_str()));
    let again: Vec<_> = again.map(|entry| (entry.key.clone(), entry.span)).collect();
    (!again.is_empty()).then_some(again)
}

/// Resolves `<<: *anchor`: adds the keys of the referenced map or maps that the map itself does not
/// contain.
fn merge(entries: &mut Vec<Entry>) -> Result<(), Fault> {
    let Some(at) = entries.iter().position(|entry| entry.key == "<<") else { return Ok(()) };
    let Entry { span, value, .. } = entries.remove(at);
    let sources = match value.value {
        Value::List(items) => items,
        _ => vec![value],
    };
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for source in sources {
        let Value::Map(more) = source.value else {
            return Err(Fault::new(span, "`<<` takes a map", "write `<<: *anchor` of a map"));
        };
        entries.extend(more.into_iter().filter(|entry| known.insert(entry.key.clone())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        load(text).1.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn a_value_knows_its_place() {
        let text = "a: 1\nlinks:\n  - r1-r2: {rate: 5mbit}\n";
        let (tree, faults) = load(text);
        assert!(faults.is_empty());
        let path = ["links".into(), 0.into(), "r1-r2".into(), "rate".into()];
        let (key, value) = tree.unwrap().locate(&path);
        assert_eq!(&text[key.start as usize..key.end as usize], "rate");
        assert_eq!(&text[value.start as usize..value.end as usize], "5mbit");
    }

    #[test]
    fn keys_have_a_maximum_length() {
        let fault = |length| load(&format!("? {}\n: 1\n", "k".repeat(length))).1;
        assert!(fault(MAX_KEY).is_empty());
        assert_eq!(fault(MAX_KEY + 1)[0].message, "a key has 1025 bytes");
    }

    #[test]
    fn faults_have_a_maximum_number() {
        let keys = "a,".repeat(100_000);
        let (_, faults) = load(&format!("{{{keys}}}"));
        assert_eq!(faults.len(), MAX_FOUND);
    }

    #[test]
    fn merge_keys_give_defaults() {
        let (tree, faults) = load("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n");
        assert!(faults.is_empty());
        let tree = tree.unwrap();
        let (_, used) = tree.step(&"use".into()).unwrap();
        let text = |key: &str| match &used.step(&key.into()).unwrap().1.value {
            Value::Scalar { text, .. } => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!((text("x"), text("y")), ("1".into(), "3".into()));
    }

    #[test]
    fn small_texts_stay_small_trees() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for n in 1..20 {
            let before = format!("*a{}, ", n - 1).repeat(9);
            bomb += &format!("a{n}: &a{n} [{}]\n", before.trim_end_matches(", "));
        }
        assert!(messages(&bomb)[0].contains("anchors and aliases add more"));
        assert!(messages(&"[".repeat(100))[0].contains("nested too deeply"));
        assert!(!messages(&"[".repeat(100_000)).is_empty());
        // Few values, but large ones.
        let large = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(17));
        assert!(messages(&large)[0].contains("anchors and aliases add more than 16 MiB"));
        // Each anchor has a copy of those inside it.
        let text = "x".repeat(1 << 20);
        let nested: String = (0..20).map(|n| format!("{}- &a{n}\n", " ".repeat(n))).collect();
        let nested = format!("{nested}{}- {text}\n", " ".repeat(20));
        assert!(messages(&nested)[0].contains("anchors and aliases add more than 16 MiB"));
        assert!(messages("a: &a [*a]")[0].contains("inside its own anchor"));
    }

    #[test]
    fn an_address_that_ends_in_colons_needs_quotes() {
        let (_, faults) = load("source: fd00:1::\nports: {}\n");
        assert_eq!(faults[0].help.as_deref(), Some("write an address that ends in `::` in quotes"));
    }

    #[test]
    fn duplicates_and_second_documents_are_faults() {
        assert_eq!(
            messages("a: 1\na: 2\nb: 1\nb: 1"),
            ["`a` is given twice", "`b` is given twice"]
        );
        assert_eq!(messages("a: 1\n---\nb: 1"), ["a second document begins here"]);
    }
}
